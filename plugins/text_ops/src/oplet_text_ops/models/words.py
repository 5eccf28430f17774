"""Splitting of many strings at white space at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet_text_ops.texts.utf8 import Joined, decode

__all__ = ["WhiteSpace", "Words"]

Array = NDArray[Any]
#: White space of several bytes that is looked for byte by byte; where there is more, all characters are decoded.
_FEW = 64
#: What bytes.split parts words at.
_SPLIT = b" \t\n\v\f\r"


class Words(NamedTuple):
    """The words of several strings, with their positions.

    Attributes:
        words: the words.
        places: the byte offset of each word in its string.
        rows: row splits: string i has the words from rows[i] up to rows[i + 1].
    """

    words: list[bytes]
    places: Array
    rows: Array


class WhiteSpace:
    """A set of white space characters that separate words.

    Args:
        bits: one bit for each code point, from 0 on, which is set for white space.
    """

    def __init__(self, bits: bytes) -> None:
        self._flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[:0x110000].astype(bool)
        self._single = np.zeros(256, bool)
        self._single[: min(len(self._flags), 0x80)] = self._flags[:0x80]
        points = np.flatnonzero(self._flags[0x80:]) + 0x80
        points = points[(points < 0xD800) | (points > 0xDFFF)]
        self._several = [chr(point).encode() for point in points.tolist()] if len(points) <= _FEW else None
        self._as_split = self._single.nonzero()[0].tolist() == sorted(_SPLIT)

    def words(self, joined: Joined, *, overlap: bool = False) -> Words:
        """Split the strings into words.

        Args:
            joined: the strings.
            overlap: whether a word includes all but the last byte of the white space character after it, as in
                WhitespaceTokenizer.
        """
        data = joined.data
        parted, more = self._parted(data)
        parted[joined.line_feeds] = True
        edges = np.flatnonzero(np.diff(parted, prepend=True))
        starts, stops = edges[::2], edges[1::2]
        if self._as_split and not len(more):
            words = data.split()
        else:
            if overlap and len(more):
                stops = stops + more[stops]
            words = [data[start:stop] for start, stop in zip(starts.tolist(), stops.tolist())]
        rows = np.searchsorted(starts, joined.starts)
        return Words(words, starts - np.repeat(joined.starts[:-1], np.diff(rows)), rows)

    def _parted(self, data: bytes) -> tuple[Array, Array]:
        """Return which bytes are white space, and the number of continuation bytes after each first byte, or an empty array if
        all are single bytes.
        """
        codes = np.frombuffer(data, np.uint8)
        parted = self._single[codes]
        more = np.zeros(0, np.int8)
        if data.isascii():
            return parted, more
        if self._several is None:
            begins, points = decode(data)
            known = points.view(np.uint32) < len(self._flags)
            spaces = np.flatnonzero(known)[self._flags[points[known]]]
            sizes = np.diff(np.append(begins, len(data)))[spaces]
            found = [(begins[spaces[sizes == size]], size) for size in (2, 3, 4)]
        else:
            found = list(self._places(codes, self._several))
        if any(len(places) for places, _ in found):
            more = np.zeros(len(codes), np.int8)
        for places, size in found:
            for step in range(size):
                parted[places + step] = True
            more[places] = size - 1
        return parted, more

    @staticmethod
    def _places(codes: Array, spaces: list[bytes]) -> Iterator[tuple[Array, int]]:
        """Yield the positions of each white space character, and its byte length; UTF-8 is self-synchronizing, so that byte
        search is safe.
        """
        padded = np.append(codes, np.zeros(3, np.uint8))
        firsts: dict[int, Array] = {}
        for space in spaces:
            if space[0] not in firsts:
                firsts[space[0]] = np.flatnonzero(codes == space[0])
            places = firsts[space[0]]
            for step, byte in enumerate(space[1:], 1):
                places = places[padded[places + step] == byte]
            yield places, len(space)
