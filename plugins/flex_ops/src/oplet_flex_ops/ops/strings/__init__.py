"""Operators on strings, which are bytes unless a node says UTF-8. Small operators share a module. See `oplet_flex_ops.texts`.

Kernels: tensorflow/core/kernels, in files named like the operators, whose refusals they share.
"""
