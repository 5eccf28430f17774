"""The runtime: the interpreter and its signature runners, subgraphs as data, and how these are loaded, resolved to kernels and
described. `blas` and `workers` know nothing of models: numpy's settings, and the threads that share a kernel's work. Code that acts
on subgraphs is in the subpackages, each of which imports only those before it: memory, describe, execution, then delegation.
"""
