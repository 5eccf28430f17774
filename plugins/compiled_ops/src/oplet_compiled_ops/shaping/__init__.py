"""Kernels that move, resize or select values, or find positions: borders, transposes, resizing, boxes, searches. Most copy raw
bits of any type.
"""
