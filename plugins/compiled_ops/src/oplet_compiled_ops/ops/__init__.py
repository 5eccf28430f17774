"""Overridden operators, one module each, named like the operator, with its `REGISTRATION`; those of a family share one
(`oplet_compiled_ops.FAMILIES`). A module plans nodes with kernels from the other packages.
"""
