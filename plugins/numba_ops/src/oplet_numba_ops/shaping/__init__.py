"""Kernels that move, resize or select values: borders, transposes, resizing, boxes, searches."""
