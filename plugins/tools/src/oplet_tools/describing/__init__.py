"""Descriptions of a model that is not run: contents, op versions, packages that serve its ops, missing ops.

Modules here read a model and return data; they print nothing.
"""
