"""Compilation of Python functions to machine code that is called with addresses: caches, arguments, vector instructions. What
comes in knows no operator.
"""
