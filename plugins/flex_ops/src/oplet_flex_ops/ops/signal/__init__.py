"""Fourier transforms, complex number parts, and audio. Small ops share a module by kind, one constant each.

The transforms are numpy's; those of single precision are computed in double precision and rounded.
"""
