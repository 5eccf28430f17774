"""Overridden operators, one module each, named like the operator. A module plans nodes with kernels from the other packages, and
defines `REGISTRATION`.
"""
