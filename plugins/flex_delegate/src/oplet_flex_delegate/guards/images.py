"""Reads image dimensions from file headers: what a decoder would allocate."""

from __future__ import annotations

import struct

__all__ = ["image_bytes"]

#: Segments of JPEG that state the size: SOF0 to SOF15, without the tables among them.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_bytes(data: bytes) -> int:
    """Return width * height * frames of a PNG, JPEG, GIF or BMP file; 0 for other data."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return int(width * height)
    if data[:3] == b"GIF" and len(data) >= 10:
        return _gif(data)
    if data[:2] == b"BM" and len(data) >= 26:
        width, height = struct.unpack_from("<ii", data, 18)
        return int(abs(width) * abs(height))
    return _jpeg(data)


def _gif(data: bytes) -> int:
    """Return canvas size times frames, an upper bound: each frame begins with a comma, but other commas count too."""
    width, height = struct.unpack_from("<HH", data, 6)
    return int(width * height) * max(data.count(b","), 1)


def _jpeg(data: bytes) -> int:
    most, at = 0, data.find(b"\xff")
    while 0 <= at < len(data) - 8:
        if data[at + 1] in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            most = max(most, height * width)
        at = data.find(b"\xff", at + 1)
    return most
