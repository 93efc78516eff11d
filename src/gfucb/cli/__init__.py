"""The commands of `gfucb`: dataclasses whose docstrings are their help. They know tyro."""
