"""Side by side with other packages: the same paired problems, each package in its environment."""
