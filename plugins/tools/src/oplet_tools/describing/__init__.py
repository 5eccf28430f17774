"""Descriptions of a model that is not run: contents, op versions, providers of ops, missing ops. What comes in reads a model and returns data.
It prints nothing.
"""
