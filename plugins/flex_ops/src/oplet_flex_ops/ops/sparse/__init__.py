"""Ops on sparse tensors (index vectors, values, shape), and sparse segment reductions."""
