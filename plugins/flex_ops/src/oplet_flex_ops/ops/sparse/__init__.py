"""Ops on sparse tensors (index vectors, values, shape). Sparse segment reductions are here, too."""
