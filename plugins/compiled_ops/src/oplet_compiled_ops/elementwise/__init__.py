"""Unary and binary elementwise kernels, and means over adjacent axes. Modules are grouped by how their loops walk over the
arrays, not by what they compute.
"""
