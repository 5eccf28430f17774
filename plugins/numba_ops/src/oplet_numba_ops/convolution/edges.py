"""The windows at the edges of a row."""

from __future__ import annotations

__all__ = ["edges"]


def edges(width: int, stride: int, dilation: int, left: int, room: int) -> tuple[int, int]:
    """The numbers of windows of a row that include padding before it, and after it; arguments as in `taps_kernel`."""
    missing = max(0, (width - 1) * dilation + 1 - room)
    return -(-left // stride), -(-missing // stride)
