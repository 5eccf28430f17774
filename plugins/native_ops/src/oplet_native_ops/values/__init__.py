"""Conversion of values to C: type numbers, packed strings, built-in options as structs.

Nothing here calls a library.
"""
