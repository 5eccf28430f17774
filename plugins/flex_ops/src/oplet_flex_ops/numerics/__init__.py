"""What the mathematical operators share: signatures and types, elementwise kernels, special functions, random generators, windows.

Nothing in this room knows an operator's name. The kernels in `oplet_flex_ops.ops` state signatures, shapes and formulas.
"""
