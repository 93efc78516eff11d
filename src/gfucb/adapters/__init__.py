"""Adapters to other packages: coba, MLflow and TensorBoard.

Every module needs the extra of its package and imports it only when it is imported itself. Adapters
of Gymnasium are in `gfucb.environments.gymnasium`, of data frames in `gfucb.tables`, and of Arrow
tables in `gfucb.evaluation.arrow_logs`.
"""
