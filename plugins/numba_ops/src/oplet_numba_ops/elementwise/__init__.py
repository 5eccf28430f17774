"""Elementwise kernels of one operand or two, and means over neighbouring axes. What comes in is named by how it walks its
arrays, not by what it computes.
"""
