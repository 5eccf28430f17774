"""Fourier transforms, parts of complex numbers, and audio. Small operators share a module by kind; each is a constant there.

The transforms are numpy's; those of single precision are computed in double precision and rounded.
"""
