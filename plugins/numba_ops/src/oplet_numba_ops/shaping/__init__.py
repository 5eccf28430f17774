"""Kernels that move, resize or select values: borders, transposes, resizing, boxes, searches. They copy raw bits or find
positions.
"""
