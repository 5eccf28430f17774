"""Unary and binary elementwise kernels, and means over adjacent axes. Modules are grouped by how they walk the arrays, not by
what they compute.
"""
