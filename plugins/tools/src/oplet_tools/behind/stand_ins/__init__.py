"""Modules that stand in for small ones of LiteRT's package, with the names that programs import.

Each does what its model does, and needs nothing of LiteRT.
"""
