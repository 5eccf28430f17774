"""Decoding of UTF-8 as ICU does it, many strings at once.

Bytes that are not UTF-8 are parted as ICU's U8_NEXT does: the longest beginning of a character, or a single byte, counts as one character
without a code point. Encoded surrogates and anything above U+10FFFF are not UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ILL_FORMED", "Joined", "characters", "decode"]

Array = NDArray[Any]
#: The code point of bytes that are not UTF-8.
ILL_FORMED = -1

_TRAIL = rb"[\x80-\xbf]"
_CHARACTER = re.compile(
    rb"[\x00-\x7f]|[\xc2-\xdf]T?|(?:\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef]T|\xed[\x80-\x9f])T?"
    rb"|(?:\xf0[\x90-\xbf]|[\xf1-\xf3]T|\xf4[\x80-\x8f])(?:TT?)?|.".replace(b"T", _TRAIL),
    re.DOTALL,
)
#: By first byte: how many bytes follow, and the least and the largest value of the second one.
_FOLLOWING, _LEAST, _MOST = np.zeros(256, np.uint8), np.full(256, 0x80, np.uint8), np.full(256, 0xBF, np.uint8)
_FOLLOWING[0xC2:0xE0], _FOLLOWING[0xE0:0xF0], _FOLLOWING[0xF0:0xF5] = 1, 2, 3
_LEAST[0xE0], _LEAST[0xF0], _MOST[0xED], _MOST[0xF4] = 0xA0, 0x90, 0x9F, 0x8F


def characters(text: bytes) -> list[bytes]:
    """Split a UTF-8 string into its characters, as bytes."""
    return _CHARACTER.findall(text)


def decode(data: bytes) -> tuple[Array, Array]:
    """Decode UTF-8: return each character's start, int64, and code point, int32 (`ILL_FORMED` for invalid bytes)."""
    codes = np.frombuffer(data, np.uint8)
    if data.isascii():
        return np.arange(len(codes)), codes.astype(np.int32)
    padded = np.concatenate([codes, np.zeros(3, np.uint8)])
    values = codes.astype(np.int32)
    values[codes >= 0x80] = ILL_FORMED
    firsts = np.flatnonzero(_FOLLOWING[codes])
    first = codes[firsts]
    following = _FOLLOWING[first]
    second, third, fourth = (padded[firsts + step] for step in (1, 2, 3))
    found = (second >= _LEAST[first]) & (second <= _MOST[first])
    more = found & (following > 1) & (third & 0xC0 == 0x80)
    most = more & (following > 2) & (fourth & 0xC0 == 0x80)
    taken = np.zeros(len(padded), bool)
    for step, there in ((1, found), (2, more), (3, most)):
        taken[firsts[there] + step] = True
    for count, there in ((1, found), (2, more), (3, most)):
        whole = there & (following == count)
        value = first[whole].astype(np.int32) & 0x3F >> count
        for part in (second, third, fourth)[:count]:
            value = value << 6 | part[whole] & 0x3F
        values[firsts[whole]] = value
    starts = np.flatnonzero(~taken[: len(codes)])
    return starts, values[starts]


class Joined:
    """Concatenated strings, each followed by a line feed, so that invalid sequences cannot cross string boundaries.

    Attributes:
        data: all bytes.
        starts: where each string begins, and the end of the data, as int64.
    """

    def __init__(self, texts: Sequence[bytes]) -> None:
        self.data = b"\n".join(texts) + b"\n" if texts else b""
        self.starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1, out=self.starts[1:])

    @property
    def line_feeds(self) -> Array:
        """The positions of the line feeds that end the strings."""
        return self.starts[1:] - 1
