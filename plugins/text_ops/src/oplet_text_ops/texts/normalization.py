"""Normalization forms and case folding of Unicode 16, whichever Unicode version Python has.

Python's `unicodedata` is used where its version makes no difference, since what is assigned keeps its normalization for ever. Characters that are
newer than the oldest supported Python's stand in a table, and those that are newer than Unicode 16 are taken for unassigned. Bytes that are
not UTF-8 stay as they are, and nothing is composed or ordered across them.

Source of the rules: Unicode Standard Annex 15 and section 3.13 of the standard, with toNFKC_Casefold.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from oplet_text_ops.texts.code_points import table

__all__ = ["FORMS", "case_fold", "normalize"]

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS = get_args(Form)
#: The version of the table.
_TABLE = (16, 0, 0)


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
def _newer() -> _Newer:
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


def normalize(text: bytes, form: Form) -> bytes:
    """Normalize a UTF-8 text to one of the `FORMS`."""
    return text if text.isascii() else _write(_normalized(_read(text), form))


def case_fold(text: bytes) -> bytes:
    """Apply NFKC_Casefold to a UTF-8 text: compatibility normalization, case folding, default-ignorables dropped."""
    return text.lower() if text.isascii() else _write(_normalized(_read(text).translate(_FOLDS), "NFC"))


def _read(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _write(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _normalized(text: str, form: Form) -> str:
    newer = _newer()
    if newer.all.isdisjoint(text) and not (newer.unassigned and newer.unassigned.search(text)):
        return unicodedata.normalize(form, text)
    decomposed = "".join(_decomposition(character, "K" in form) for character in text)
    ordered = _ordered(decomposed)
    return _composed(ordered) if form.endswith("C") else ordered


@lru_cache(maxsize=1)
def _bounds() -> list[int]:
    """Return the boundaries of the assigned code point ranges: each start, and the first code point after each end."""
    bounds: list[int] = (table()["assigned"] + (0, 1)).ravel().tolist()
    return bounds


def _assigned(character: str) -> bool:
    return bool(bisect_right(_bounds(), ord(character)) & 1)


def _decomposition(character: str, compatible: bool) -> str:
    newer = _newer()
    own = (newer.compatible if compatible else newer.canonical).get(character)
    if own is not None:
        return own
    return unicodedata.normalize("NFKD" if compatible else "NFD", character) if _assigned(character) else character


def _class(character: str) -> int:
    own = _newer().classes.get(character)
    if own is not None:
        return own
    order = unicodedata.combining(character)
    return order if order and _assigned(character) else 0


def _ordered(text: str) -> str:
    """Sort runs of combining marks by class, stably (canonical ordering)."""
    made: list[str] = []
    marks: list[str] = []
    for character in text:
        if _class(character):
            marks.append(character)
        else:
            made += [*sorted(marks, key=_class), character]
            marks = []
    return "".join(made + sorted(marks, key=_class))


def _composed(text: str) -> str:
    """Compose starters with following marks that are not blocked (canonical composition)."""
    made: list[str] = []
    starter, last = -1, 0
    for character in text:
        order = _class(character)
        if starter >= 0 and (last < order or (last == 0 and starter == len(made) - 1)):
            whole = _pair(made[starter], character)
            if whole:
                made[starter] = whole
                continue
        if order == 0:
            starter = len(made)
        last = order
        made.append(character)
    return "".join(made)


def _pair(first: str, second: str) -> str:
    """Return the composition of two characters; "" if there is none."""
    own = _newer().pairs.get(first + second)
    if own is not None:
        return own
    whole = unicodedata.normalize("NFC", first + second)
    return whole if len(whole) == 1 and _assigned(first) and _assigned(second) and _assigned(whole) else ""


class _Folds(dict[int, str]):
    """A lazy str.translate table of NFKC_Casefold."""

    def __missing__(self, point: int) -> str:
        if not self:
            found = table()
            self.update(zip(found["folded"].tolist(), str(found["folds"]).split("\n")))
            for first, last in found["dropped"].tolist():
                self.update((each, "") for each in range(first, last + 1))
            if point in self:
                return self[point]
        character = chr(point)
        made = character
        if _assigned(character):
            made = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", character).casefold())
            made = unicodedata.normalize("NFKC", made.casefold())
        self[point] = made
        return made


_FOLDS = _Folds()
