"""Values between the points of a map, and positions that follow its offsets."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet.kernels.arrays import Array

__all__ = ["clamp", "clamped", "sample", "sampled"]

_ZERO, _ONE = np.float32(0), np.float32(1)


def clamp(value: Any, most: Any) -> Any:
    """Clamp a number to 0 .. `most`; NaN becomes 0."""
    return most if value > most else value if value >= _ZERO else _ZERO


def clamped(values: Array, most: Any) -> Array:
    """Clamp an array's numbers to 0 .. `most`; NaN becomes 0."""
    limited: Array = np.minimum(np.fmax(values, _ZERO), most)
    return limited


def sample(map: Array, y: Any, x: Any, channels: tuple[int, ...]) -> list[Any]:
    """Interpolate a map bilinearly at one position (y, x) within it; return the value of each of the channels, in float32."""
    top, left = int(y), int(x)
    low, right = top + (y > top), left + (x > left)
    down, across = y - np.float32(top), x - np.float32(left)
    up, back = _ONE - down, _ONE - across
    corners = map[top, left], map[top, right], map[low, left], map[low, right]
    return [
        up * (back * corners[0][channel] + across * corners[1][channel])
        + down * (back * corners[2][channel] + across * corners[3][channel])
        for channel in channels
    ]


def sampled(map: Array, y: Array, x: Array) -> Array:
    """Interpolate a map bilinearly at `y` and `x`, (positions, channels): column c is read from channel c of the map."""
    top, left = np.floor(y).astype(np.intp), np.floor(x).astype(np.intp)
    low, right = np.ceil(y).astype(np.intp), np.ceil(x).astype(np.intp)
    down, across = y - top.astype(np.float32), x - left.astype(np.float32)
    up, back = _ONE - down, _ONE - across
    channel = np.arange(map.shape[2])
    upper = back * map[top, left, channel] + across * map[top, right, channel]
    lower = back * map[low, left, channel] + across * map[low, right, channel]
    found: Array = up * upper + down * lower
    return found
