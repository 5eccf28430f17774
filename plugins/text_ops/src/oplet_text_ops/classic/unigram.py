"""Unigram tokenization: the best path (Viterbi) through a normalized text.

Numerics: EncodeOptimized in unigram_model.cc of google/sentencepiece 0.1.96. The sums are kept as float32, and a new one is compared with
them as a double, before it is rounded.
"""

from __future__ import annotations

from array import array

from oplet import charge, checkpoint
from oplet.kernels.limits import paced
from oplet.kernels.strings import StringMeter
from oplet_text_ops.classic.model import Kind, Model

__all__ = ["Unigrams", "character_length"]

#: The bytes of a character by the upper half of its first one.
_LENGTHS = (1,) * 12 + (2, 2, 3, 4)
_PENALTY = 10.0
#: Bytes of an entry of the table of pieces, and of scratch for each byte of a text: its places, and at most a piece.
_ENTRY, _SCRATCH = 64, 240


def character_length(text: bytes, at: int) -> int:
    """Return the byte length of the UTF-8 character at `at`, as its first byte tells, but not beyond the end of the text."""
    return min(_LENGTHS[text[at] >> 4], len(text) - at)


class Unigrams:
    """A unigram tokenizer: vocabulary and scores of a sentencepiece model."""

    def __init__(self, model: Model) -> None:
        self._unknown = model.unknown
        #: The number of each piece, -1 for what is only the beginning of one.
        self._known: dict[bytes, int] = {}
        meter = StringMeter()
        for piece, number in model.ordinary.items():
            for end in range(1, len(piece)):
                beginning = piece[:end]
                if beginning not in self._known:
                    meter.add(end + _ENTRY)
                    self._known[beginning] = -1
            meter.read(len(piece) * len(piece) // 2)
            self._known[piece] = number if model.kinds[number] != Kind.UNUSED else -1
        normal = [score for score, kind in zip(model.scores, model.kinds) if kind == Kind.NORMAL]
        single = array("f", (min(normal, default=3.4028234663852886e38), 0.0))
        single[1] = single[0] - _PENALTY
        self._penalty = single[1]
        self._best = max([*normal, 1.1754943508222875e-38])
        self._scores = {
            number: None if model.kinds[number] == Kind.USER_DEFINED else model.scores[number]
            for number in model.ordinary.values()
        }

    def cut(self, text: bytes) -> list[tuple[bytes, int]]:
        """Tokenize a text by the path of the highest score; return (piece, id) pairs."""
        known, scores, size = self._known, self._scores, len(text)
        charge(_SCRATCH * size)
        best, starts, numbers = array("f", bytes(4 * (size + 1))), [-1] * (size + 1), [-1] * (size + 1)
        single = array("f", (0.0,))
        start = 0
        while start < size:
            checkpoint()
            here, length = best[start], character_length(text, start)
            alone = False
            for end in paced(range(start + 1, size + 1), 64):
                number = known.get(text[start:end])
                if number is None:
                    break
                if number < 0:
                    continue
                score = scores[number]
                total = ((end - start) * self._best - 0.1 if score is None else score) + here
                if starts[end] < 0 or total > best[end]:
                    best[end], starts[end], numbers[end] = total, start, number
                alone = alone or end - start == length
            end = start + length
            if not alone:
                single[0] = self._penalty + here
                if starts[end] < 0 or single[0] > best[end]:
                    best[end], starts[end], numbers[end] = single[0], start, self._unknown
            start = end
        found, end = [], size
        while end > 0:
            found.append((text[starts[end] : end], numbers[end]))
            end = starts[end]
        return found[::-1]
