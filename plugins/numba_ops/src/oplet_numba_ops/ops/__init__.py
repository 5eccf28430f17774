"""Overridden operators, one module each, named like the operator: it plans nodes with the other packages' kernels, and defines
`REGISTRATION`.
"""
