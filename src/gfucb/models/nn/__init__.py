"""Layers and networks: the default network, seeded layers, stacks, CUDA graphs."""
