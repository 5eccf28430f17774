"""The runtime: the interpreter and its signature runners, subgraphs as data, and how these are loaded and resolved to kernels.
Code that acts on subgraphs is in the subpackages, each of which imports only those before it: memory, threads, describe,
execution, then delegation.
"""
