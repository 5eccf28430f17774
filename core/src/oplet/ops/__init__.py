"""The interface between kernels and the runtime: nodes, tensors, the context, calls of other subgraphs, checks.

`serving` decides which registration serves a node.
"""
