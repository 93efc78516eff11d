"""Adapters to other packages: coba, MLflow, TensorBoard and Arrow.

Every module needs the extra of its package and imports it only when it is imported itself. Adapters
of Gymnasium are in `gfucb.environments.gymnasium`, those of data frames in `gfucb.tables`.
"""
