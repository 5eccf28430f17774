"""Words between white space, in many strings at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet_text_ops.utf8 import Joined, decode

__all__ = ["Words", "words_between"]

Array = NDArray[Any]


class Words(NamedTuple):
    """The words of several strings.

    Attributes:
        words: the words.
        places: where each begins in its string.
        rows: how many words the strings before it have, for each string and the end.
    """

    words: list[bytes]
    places: Array
    rows: Array


def words_between(joined: Joined, spaces: Array, *, overlap: bool = False) -> Words:
    """The words between white space.

    Args:
        joined: the strings.
        spaces: for each code point, from 0 on, whether it is white space.
        overlap: whether a word ends one byte before the end of the white space that follows, as in WhitespaceTokenizer.
    """
    data = joined.data
    begins, points = decode(data)
    parted = np.zeros(len(points), bool)
    known = points.view(np.uint32) < len(spaces)
    parted[known] = spaces[points[known]]
    parted[np.searchsorted(begins, joined.line_feeds)] = True
    edges = np.flatnonzero(np.diff(parted, prepend=True))
    starts, stops = begins[edges[::2]], begins[edges[1::2]]
    if overlap:
        stops = np.append(begins, len(data))[edges[1::2] + 1] - 1
    words = [data[start:stop] for start, stop in zip(starts.tolist(), stops.tolist())]
    rows = np.searchsorted(starts, joined.starts)
    return Words(words, starts - np.repeat(joined.starts[:-1], np.diff(rows)), rows)
