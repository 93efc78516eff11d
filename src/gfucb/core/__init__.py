"""Protocols, records, validation, errors, linear algebra, random streams: what all others share."""
