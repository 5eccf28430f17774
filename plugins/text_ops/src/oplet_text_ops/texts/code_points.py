"""ICU's code point properties of the Unicode version that TensorFlow Text was built with (16), independent of Python's
`unicodedata`.

The table `tables/code_points.npz` is written by `tests/record_code_points.py`, from what TensorFlow Text answers.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "PLAIN",
    "PUNCTUATION",
    "WHITE_SPACE",
    "WHITE_SPACES",
    "contains",
    "kind_of",
    "kinds",
    "scripts_of",
    "table",
    "white_space_bits",
]

Array = NDArray[Any]
#: The kinds of characters that words are parted at.
PLAIN, WHITE_SPACE, PUNCTUATION = range(3)
#: The characters with Unicode's property White_Space, as bytes. `str.isspace` has U+001C to U+001F as well.
WHITE_SPACES = tuple(
    chr(point).encode()
    for point in (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
)
_SPACES = frozenset(WHITE_SPACES)


@lru_cache(maxsize=1)
def table() -> dict[str, Array]:
    """Return the Unicode data of the package by name: ranges as [first, last], mappings as arrays of code points and strings."""
    with (files("oplet_text_ops.tables") / "code_points.npz").open("rb") as file, np.load(file) as found:
        return {name: found[name] for name in found}


@lru_cache(maxsize=1)
def white_space_bits() -> bytes:
    """Return a bit set over all code points, set for white space: the format of WhitespaceTokenizerConfig."""
    points = [ord(space.decode()) for space in WHITE_SPACES]
    flags = np.zeros(max(points) + 1, bool)
    flags[points] = True
    return np.packbits(flags, bitorder="little").tobytes()


@lru_cache(maxsize=1)
def kinds() -> NDArray[np.uint8]:
    """Return the kind (white space, punctuation, plain) of each code point; the last element, for index -1, is `PLAIN`."""
    found = np.full(0x110001, PLAIN, np.uint8)
    for first, last in table()["punctuation"].tolist():
        found[first : last + 1] = PUNCTUATION
    found[[ord(space.decode()) for space in WHITE_SPACES]] = WHITE_SPACE
    return found


def scripts_of(points: Array) -> Array:
    """Return the script of each code point, numbered as in ICU (UScriptCode); -1 for numbers outside of Unicode."""
    return _in_ranges(points, "script_starts", "scripts")


def word_scripts_of(points: Array) -> Array:
    """Return a number for the script of each code point by which TensorFlow Text splits words; -1 for numbers outside of Unicode.

    The numbers are not ICU's: equal numbers mean the same script. The data are those of TensorFlow Text's ICU, not TensorFlow's.
    """
    return _in_ranges(points, "word_script_starts", "word_scripts")


def _in_ranges(points: Array, starts: str, numbers: str) -> Array:
    found = table()[numbers][np.searchsorted(table()[starts], points, side="right") - 1]
    return np.where((points >= 0) & (points < 0x110000), found, -1)


def contains(ranges: str, points: Array) -> Array:
    """Return a mask of the code points that lie in the ranges stored under this name in the package's Unicode data."""
    bounds = table()[ranges]
    place = np.searchsorted(bounds[:, 0], points, side="right") - 1
    inside: Array = (place >= 0) & (points <= bounds[np.maximum(place, 0), 1])
    return inside


@lru_cache(maxsize=1 << 14)
def kind_of(character: bytes) -> int:
    """Classify a character: white space, punctuation (as BERT: ASCII symbols and ideographs, too) or plain.

    Bytes that are not UTF-8 are `PLAIN`.
    """
    if character in _SPACES:
        return WHITE_SPACE
    try:
        point = ord(character.decode())
    except UnicodeDecodeError:
        return PLAIN
    return PUNCTUATION if contains("punctuation", np.array(point)) else PLAIN
