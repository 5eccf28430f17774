"""LiteRT's packed string format: count, the offset of each string and of the end, then the characters."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np

from oplet import ensure

__all__ = ["pack_strings", "unpack_strings"]


def pack_strings(array: np.ndarray[Any, Any]) -> bytes:
    """Pack an array of bytes or str, in C order, into LiteRT's buffer layout of string tensors."""
    texts = [text.encode() if isinstance(text, str) else bytes(text) for text in array.ravel().tolist()]
    offsets = np.cumsum([4 * (len(texts) + 2), *map(len, texts)])
    ensure(
        offsets[-1] < 2**31, f"{len(texts)} strings of together {offsets[-1]} bytes are more than fit into a tensor of strings."
    )
    return struct.pack("<i", len(texts)) + offsets.astype("<i4").tobytes() + b"".join(texts)


def unpack_strings(block: bytes) -> list[bytes]:
    """Unpack LiteRT's buffer layout of string tensors into a list of strings.

    Raises:
        ValueError: the offsets in the buffer are invalid.
    """
    if not block:
        return []
    if len(block) < 8:
        raise ValueError(f"a block of {len(block)} bytes holds no strings")
    [count] = struct.unpack_from("<i", block)
    if not 0 <= count <= (len(block) - 8) // 4:
        raise ValueError(f"a block of {len(block)} bytes is said to hold {count} strings")
    offsets = struct.unpack_from(f"<{count + 1}i", block, 4)
    if offsets[0] < 4 * (count + 2) or offsets[-1] > len(block) or any(a > b for a, b in itertools.pairwise(offsets)):
        raise ValueError("the offsets of its strings are out of order or lead out of their block")
    return [block[a:b] for a, b in itertools.pairwise(offsets)]
