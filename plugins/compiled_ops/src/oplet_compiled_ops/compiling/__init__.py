"""Compilation of Python functions to machine code that is called with raw addresses: caches, arguments, vector intrinsics. It
knows no operator.
"""
