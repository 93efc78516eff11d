"""Theory one can compute: dimensions, covers, radii, bounds, Bellman errors."""
