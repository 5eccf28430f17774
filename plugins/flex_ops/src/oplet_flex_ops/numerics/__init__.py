"""Shared parts of mathematical ops: signatures, elementwise kernels, special functions, random generators, 2D windows.

Nothing in this room knows an operator's name. The kernels in `oplet_flex_ops.ops` state signatures, shapes and formulas.
"""
