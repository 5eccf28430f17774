"""Threads: worker threads that share a kernel's work, and the settings of numpy and BLAS in them. What comes in knows nothing of models."""
