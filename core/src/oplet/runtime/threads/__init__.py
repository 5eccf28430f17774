"""Threads: worker threads that share a kernel's work, and the settings of numpy and BLAS in them. They know nothing of models."""
