"""The commands of `gfucb`: dataclasses whose docstrings are their help, parsed by tyro."""
