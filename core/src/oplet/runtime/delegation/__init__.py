"""Delegates on a model: which nodes they claim, the kernels that take their place, and the way back. What comes in drives executors;
nothing below calls it but by `Session.runners`.
"""
