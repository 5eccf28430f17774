"""Normalization forms and case folding of Unicode 16, whichever Unicode version Python has.

Bytes that are not UTF-8 stay as they are, and nothing is composed or ordered across them.

Long texts are worked on in pieces, between which the run can be stopped: they are cut where nothing composes or is ordered across the cut.
Long runs of combining marks, which Python's `unicodedata` orders by exchanging neighbours, are ordered here, so that the time is linear.

Source of the rules: Unicode Standard Annex 15 and section 3.13 of the standard, with toNFKC_Casefold.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import Literal, get_args

from oplet import checkpoint
from oplet.kernels.strings import StringMeter
from oplet_text_ops.texts.characters import LONG, assigned, begins, combining_class, decomposition, find_run, newer, pair
from oplet_text_ops.texts.code_points import table

__all__ = ["FORMS", "case_fold", "normalize"]

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS = get_args(Form)
#: Characters of a piece, unless there is none before which it can be cut.
_PIECE = 1 << 12
#: Marks of one class that may compose: no character is made of more than a starter and three marks, and after one that does not compose,
#: no other of its class does.
_COMPOSING = 4
#: Bytes of scratch for each byte of a text: the text as `str`.
_SCRATCH = 4


def normalize(text: bytes, meter: StringMeter, *, form: Form) -> bytes:
    """Normalize a UTF-8 text to one of the `FORMS`, such as "NFC"; `meter` charges the memory."""
    return text if text.isascii() else _written(text, _normalized(_read(text, meter), form), meter)


def case_fold(text: bytes, meter: StringMeter) -> bytes:
    """Apply NFKC_Casefold to a UTF-8 text: compatibility normalization, case folding, default-ignorables dropped."""
    if text.isascii():
        return text.lower()
    return _written(text, _normalized("".join(_folded(_read(text, meter), meter)), "NFC"), meter)


def _read(text: bytes, meter: StringMeter) -> str:
    meter.hold(_SCRATCH * len(text))
    return text.decode("utf-8", "surrogateescape")


def _written(text: bytes, pieces: Iterator[str], meter: StringMeter) -> bytes:
    """Return the pieces as bytes; they are checked as they are made, and once more for joining them, with the scratch of the text."""
    made, nbytes = [], len(text)
    for piece in pieces:
        made.append(piece.encode("utf-8", "surrogateescape"))
        nbytes += len(made[-1])
        meter.hold(2 * nbytes + _SCRATCH * len(text))
    return b"".join(made)


def _folded(text: str, meter: StringMeter) -> Iterator[str]:
    """Yield the text with each character replaced by its case folding, in pieces."""
    nbytes = 0
    for first in range(0, len(text), _PIECE):
        piece = text[first : first + _PIECE].translate(_FOLDS)
        nbytes += _SCRATCH * len(piece)
        meter.hold(2 * nbytes)
        yield piece


def _normalized(text: str, form: Form) -> Iterator[str]:
    """Yield the normalized text in pieces."""
    if len(text) < LONG:
        yield _short(text, form)
        return
    at, compatible = 0, "K" in form
    while at < len(text):
        end = min(at + _PIECE, len(text))
        while end < len(text) and not begins(text[end]):
            end += 1
        while run := find_run(text, at, end, compatible):
            yield from _with_run(text[at : run.start()], run[0], form)
            at = run.end()
        yield _short(text[at:end], form)
        at = end


def _with_run(text: str, run: str, form: Form) -> Iterator[str]:
    """Yield a normalized text that ends with a long run of marks, which are given by themselves.

    Of each class, the first few marks are normalized with the text. All others stay as they are, behind those of their class that are
    left: more than compose, so that nothing composes across the end of the run either.
    """
    marks = _by_class(run, "K" in form)
    first = "".join("".join(marks[order])[:_COMPOSING] for order in sorted(marks))
    made = _short(text + first, form)
    start = len(made)
    while start and combining_class(made[start - 1]):
        start -= 1
    left: defaultdict[int, str] = defaultdict(str)
    for mark in made[start:]:
        left[combining_class(mark)] += mark
    yield made[:start]
    for order in sorted({*marks, *left}):
        yield left[order]
        skipped = _COMPOSING
        for same in marks.get(order, ()):
            yield same[skipped:]
            skipped = max(0, skipped - len(same))


def _by_class(run: str, compatible: bool) -> dict[int, list[str]]:
    """Return the marks of a run, decomposed, by their combining class, those of each in their order."""
    found: dict[int, list[str]] = {}
    for first in range(0, len(run), _PIECE):
        checkpoint()
        piece = run[first : first + _PIECE]
        piece = piece.translate({ord(mark): decomposition(mark, compatible) for mark in set(piece)})
        order_of = {mark: combining_class(mark) for mark in set(piece)}.__getitem__
        for order, same in groupby(sorted(piece, key=order_of), key=order_of):
            found.setdefault(order, []).append("".join(same))
    return found


def _short(text: str, form: Form) -> str:
    """Normalize a text without long runs of marks."""
    known = newer()
    if known.all.isdisjoint(text) and not (known.unassigned and known.unassigned.search(text)):
        return unicodedata.normalize(form, text)
    decomposed = "".join(decomposition(character, "K" in form) for character in text)
    ordered = _ordered(decomposed)
    return _composed(ordered) if form.endswith("C") else ordered


def _ordered(text: str) -> str:
    """Sort runs of combining marks by class, stably (canonical ordering)."""
    made: list[str] = []
    marks: list[str] = []
    for character in text:
        if combining_class(character):
            marks.append(character)
        else:
            made += [*sorted(marks, key=combining_class), character]
            marks = []
    return "".join(made + sorted(marks, key=combining_class))


def _composed(text: str) -> str:
    """Compose starters with following marks that are not blocked (canonical composition)."""
    made: list[str] = []
    starter, last = -1, 0
    for character in text:
        order = combining_class(character)
        if starter >= 0 and (last < order or (last == 0 and starter == len(made) - 1)):
            whole = pair(made[starter], character)
            if whole:
                made[starter] = whole
                continue
        if order == 0:
            starter = len(made)
        last = order
        made.append(character)
    return "".join(made)


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
        if assigned(character):
            made = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", character).casefold())
            made = unicodedata.normalize("NFKC", made.casefold())
        self[point] = made
        return made


_FOLDS = _Folds()
