"""What authors of kernels share: operand checks, axes, shapes, windows, activation bounds, custom options, fixed point.

Functions and types of arrays, tensors and nodes that are true of many operators live here; what one operator does lives with its package.
"""
