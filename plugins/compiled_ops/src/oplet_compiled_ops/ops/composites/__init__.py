"""Compiled kernels of composites, each a module named like the composite without its dialect."""
