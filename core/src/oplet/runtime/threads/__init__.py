"""Threads: those that share a kernel's work, and how numpy and BLAS behave in them. What comes in knows nothing of models."""
