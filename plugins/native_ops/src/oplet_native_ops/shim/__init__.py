"""The C library of this package, seen from Python, and other people's libraries bound to it.

It stands in for LiteRT's runtime: it exports the functions of the public C API. Nothing here knows what an operator computes.
"""
