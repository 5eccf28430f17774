"""What a kernel gets and gives: nodes, tensors, the context, calls of other subgraphs, checks. `serving` says which registration serves a node,
`asynchronous` what asynchronous kernels offer.
"""
