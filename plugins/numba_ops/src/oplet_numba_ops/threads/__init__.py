"""Threads that share a kernel's work: how it is divided, atomic operations, the team of threads. What comes in knows kernels and
no operator.
"""
