"""This package's own C library, seen from Python, and the loading of third-party libraries against it.

It stands in for LiteRT's runtime: it exports the functions of the public C API. Nothing here knows what an operator computes.
"""
