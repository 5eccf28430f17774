"""Unary and binary elementwise kernels and means over adjacent axes, grouped by how they walk the arrays."""
