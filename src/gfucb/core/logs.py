"""Lines of the library's loggers, whose numbers are also attributes of the log record."""

from __future__ import annotations

import logging
from typing import Any


def log(logger: logging.Logger, level: int, message: str, **fields: Any) -> None:
    """Log a message with `%(field)s` in it; handlers that write JSON find the fields by name."""
    if logger.isEnabledFor(level):
        logger.log(level, message, fields, extra=fields, stacklevel=2)
