"""Other packages as players of the problems. Only numpy and the package itself are imported."""
