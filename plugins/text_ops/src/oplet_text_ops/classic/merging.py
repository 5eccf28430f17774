"""BPE tokenization: adjacent pieces are merged, the pair with the best score first.

Numerics: bpe_model.cc of google/sentencepiece 0.1.96.
"""

from __future__ import annotations

import heapq
import re

from oplet import charge, checkpoint
from oplet.kernels.limits import paced
from oplet_text_ops.classic.model import Kind, Model
from oplet_text_ops.classic.unigram import character_length

__all__ = ["Merges"]

#: Bytes of scratch for each byte of a text: its characters, and the pairs of them.
_SCRATCH = 320


class Merges:
    """A BPE tokenizer: vocabulary and merge scores of a sentencepiece model.

    Args:
        model: the model.
        own: a pattern of the user-defined pieces, which are never merged; None if there are none.
    """

    def __init__(self, model: Model, own: re.Pattern[bytes] | None) -> None:
        self._model, self._own = model, own
        self._scores = {piece: model.scores[number] for piece, number in model.ordinary.items()}
        self._unused = {piece for piece, number in model.ordinary.items() if model.kinds[number] == Kind.UNUSED}

    def cut(self, text: bytes) -> list[tuple[bytes, int]]:
        """Tokenize a text by BPE; return (piece, id) pairs."""
        charge(_SCRATCH * len(text))
        parts, frozen = self._characters(text)
        before, behind = [index - 1 for index in range(len(parts))], [*range(1, len(parts)), -1]
        agenda: list[tuple[float, int, int, int]] = []
        halves: dict[bytes, tuple[bytes, bytes]] = {}

        def offer(left: int, right: int) -> None:
            if left < 0 or right < 0 or frozen[left] or frozen[right]:
                return
            piece = parts[left] + parts[right]
            score = self._scores.get(piece)
            if score is not None:
                heapq.heappush(agenda, (-score, left, right, len(piece)))
                if piece in self._unused:
                    halves[piece] = parts[left], parts[right]

        for index in paced(range(1, len(parts))):
            offer(index - 1, index)
        while agenda:
            checkpoint()
            _, left, right, size = heapq.heappop(agenda)
            if not parts[left] or not parts[right] or len(parts[left]) + len(parts[right]) != size:
                continue  # one of them was merged with another
            parts[left] += parts[right]
            parts[right] = b""
            behind[left] = behind[right]
            if behind[right] >= 0:
                before[behind[right]] = left
            offer(before[left], left)
            offer(left, behind[left])
        found: list[tuple[bytes, int]] = []
        for part in filter(None, parts):
            self._add(part, halves, found)
        return found

    def _characters(self, text: bytes) -> tuple[list[bytes], list[bool]]:
        """Split a text into characters and user-defined pieces; return them, and flags for those that must not be merged."""
        parts: list[bytes] = []
        frozen: list[bool] = []
        at = 0
        while at < len(text):
            if not len(parts) & 1023:
                checkpoint()
            own = self._own.match(text, at) if self._own else None
            end = own.end() if own else at + character_length(text, at)
            parts.append(text[at:end])
            frozen.append(own is not None)
            at = end
        return parts, frozen

    def _add(self, piece: bytes, halves: dict[bytes, tuple[bytes, bytes]], found: list[tuple[bytes, int]]) -> None:
        """Append a piece to `found`; split a piece marked unused back into the halves that it was merged from."""
        waiting = [piece]
        while waiting:
            part = waiting.pop()
            if part in self._unused and part in halves:
                waiting += reversed(halves[part])
            else:
                found.append((part, self._model.number(part)))
