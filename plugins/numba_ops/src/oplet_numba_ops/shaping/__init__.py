"""Kernels that move, resize or choose values: borders, transposes, resizing, boxes, searches. What comes in copies bits or
selects positions.
"""
