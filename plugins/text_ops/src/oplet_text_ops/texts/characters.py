"""What normalization needs to know about single characters, by Unicode 16, whichever Unicode version Python has.

Python's `unicodedata` is used where its version makes no difference, since what is assigned keeps its normalization for ever. Characters that are
newer than the oldest supported Python's stand in a table, and those that are newer than Unicode 16 are taken for unassigned.

Source of the rules: Unicode Standard Annex 15 and section 3.13 of the standard.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from oplet_text_ops.texts.code_points import table

__all__ = ["LONG", "assigned", "begins", "combining_class", "decomposition", "find_run", "newer", "pair"]

#: The version of the table.
_TABLE = (16, 0, 0)
#: Marks in a row from which on a run is long, and how many characters are not looked at when one is searched for.
LONG, _STRIDE = 32, 8
#: Where combining marks are looked for, and where Hangul's vowels and last consonants are.
_FIRST, _BEHIND, _VOWELS, _LAST = 0x300, 0x20000, range(0x1161, 0x1176), range(0x11A8, 0x11C3)
#: What is no mark, but is made of marks: by its canonical decomposition, and by its compatibility decomposition only.
_OF_MARKS, _COMPATIBLE = "\u0f73\u0f75\u0f81", "\uff9e\uff9f"


class _Newer(NamedTuple):
    """Character data newer than a supported Python may have: combining classes, decompositions, compositions, and a regular
    expression that finds such characters.
    """

    classes: dict[str, int]
    canonical: dict[str, str]
    compatible: dict[str, str]
    pairs: dict[str, str]
    all: frozenset[str]
    unassigned: re.Pattern[str] | None


@lru_cache(maxsize=1)
def newer() -> _Newer:
    """Return Unicode data of characters that are newer than the Unicode version of some supported Python."""
    found = table()
    parts = str(found["parts"]).split("\n")
    sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for point, compatible, text in zip(found["decomposed"].tolist(), found["compatibility"].tolist(), parts):
        sides[compatible][chr(point)] = text
    classes = {chr(point): order for point, order in found["classes"].tolist()}
    pairs = {chr(first) + chr(second): chr(whole) for first, second, whole in found["pairs"].tolist()}
    special = frozenset({*classes, *sides[0], *sides[1], *pairs.values(), *(pair[0] for pair in pairs)})
    unassigned = None
    if tuple(map(int, unicodedata.unidata_version.split("."))) > _TABLE:
        bounds = found["assigned"].ravel().tolist()
        ranges = [(last + 1, first - 1) for last, first in zip(bounds[1::2], [*bounds[2::2], 0x110000]) if last + 1 < first]
        unassigned = re.compile("[" + "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in ranges) + "]")
    return _Newer(classes, *sides, pairs, special, unassigned)


@lru_cache(maxsize=1)
def _bounds() -> list[int]:
    """Return the boundaries of the assigned code point ranges: each start, and the first code point after each end."""
    bounds: list[int] = (table()["assigned"] + (0, 1)).ravel().tolist()
    return bounds


def assigned(character: str) -> bool:
    """Return whether the character is assigned in Unicode 16."""
    return bool(bisect_right(_bounds(), ord(character)) & 1)


def decomposition(character: str, compatible: bool) -> str:
    """Return the full decomposition of a character, compatibility (NFKD) or canonical (NFD); itself if it has none."""
    found = newer()
    own = (found.compatible if compatible else found.canonical).get(character)
    if own is not None:
        return own
    return unicodedata.normalize("NFKD" if compatible else "NFD", character) if assigned(character) else character


def combining_class(character: str) -> int:
    """Return the canonical combining class; 0 for starters."""
    own = newer().classes.get(character)
    if own is not None:
        return own
    order = unicodedata.combining(character)
    return order if order and assigned(character) else 0


def pair(first: str, second: str) -> str:
    """Return the canonical composition of two characters; "" if there is none."""
    own = newer().pairs.get(first + second)
    if own is not None:
        return own
    whole = unicodedata.normalize("NFC", first + second)
    return whole if len(whole) == 1 and assigned(first) and assigned(second) and assigned(whole) else ""


@lru_cache(maxsize=2)
def _marks(compatible: bool) -> frozenset[str]:
    """Return the characters whose decomposition has combining marks only."""
    found = {chr(point) for point in range(_FIRST, _BEHIND) if unicodedata.combining(chr(point))}
    found = {mark for mark in found if assigned(mark)}
    found |= {*newer().classes, *_OF_MARKS, *(_COMPATIBLE if compatible else "")}
    return frozenset(found)


@lru_cache(maxsize=2)
def _run_patterns(compatible: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return regular expressions: one of long runs, each of which is looked at once, and one of what is left of them by `_STRIDE`."""
    marks = f"[{''.join(map(re.escape, sorted(_marks(compatible))))}]"
    return re.compile(f"{marks}(?<!{marks}{marks}){marks}{{{LONG - 1},}}"), re.compile(f"{marks}{{{LONG // _STRIDE}}}")


def find_run(text: str, start: int, end: int, compatible: bool) -> re.Match[str] | None:
    """Find the first whole run, from `start` on, of at least `LONG` characters that decompose into combining marks only.

    Few texts have one, so that first only every few characters are looked at.
    """
    runs, sampled = _run_patterns(compatible)
    found = sampled.search(text[start:end:_STRIDE])
    return runs.search(text, max(start, start + (found.start() - 1) * _STRIDE), end) if found else None


@lru_cache(maxsize=1 << 12)
def begins(character: str) -> bool:
    """Return whether a text can be split before the character for normalization: it composes with nothing before it."""
    firsts = {decomposition(character, compatible)[0] for compatible in (False, True)}
    return not any(map(combining_class, firsts)) and firsts.isdisjoint(_seconds())


@lru_cache(maxsize=1)
def _seconds() -> frozenset[str]:
    """Return what is the second of a composition."""
    parts = (unicodedata.decomposition(chr(point)) for point in range(_FIRST, _BEHIND))
    pairs = (part.split() for part in parts if part and part[0] != "<")
    seconds = {chr(int(part, 16)) for pair in pairs for part in pair[1:]}
    return frozenset({*seconds, *map(chr, _VOWELS), *map(chr, _LAST), *(both[1] for both in newer().pairs)})
