"""Best path (Viterbi) through one text: the pieces with the largest sum of scores.

It goes from byte to byte, and for each it remembers the best way to get there. Of ways that are equally good the first one counts: from
the earlier byte, and a step over an unknown byte before a piece. Sums are rounded to float32 after each piece, as in the C++, where
they decide between ways that are equally good but for that.

Numerics: EncodeNormalizedString in optimized_encoder.cc of tensorflow/text.
"""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

from oplet import charge, checkpoint
from oplet_text_ops.sentencepiece.trie import PieceTrie

__all__ = ["Cut", "Pieces", "best_path", "cut_word"]


#: Bytes for each byte of a text: two sums, a code and a place, with references to them.
_SCRATCH = 144
#: A mask of the steps of a walk between two looks at the clock.
_OFTEN = 1023


class Pieces(NamedTuple):
    """The vocabulary: trie, scores, unknown id.

    Attributes:
        trie: the pieces, with their ids as values.
        scores: the pieces' scores by id, float32.
        unknown: the id for bytes that no piece covers; negative where the model has none.
        penalty: the score of such a byte.
    """

    trie: PieceTrie
    scores: list[float]
    unknown: int
    penalty: float


class Cut(NamedTuple):
    """A tokenized word.

    Attributes:
        codes: the ids of the pieces; None if the word cannot be tokenized.
        score: the sum of the pieces' scores.
        gap: the smallest margin: best minus second-best score at the end of any piece.
    """

    codes: list[int] | None
    score: float
    gap: float


def best_path(pieces: Pieces, text: bytes) -> list[int]:
    """Return the ids on the path of the highest score through a text, runs of unknown bytes as one; empty if there is no path."""
    return list(_cut(pieces, text, rounded=True).codes or ())


def cut_word(pieces: Pieces, word: bytes) -> Cut:
    """Tokenize a word, with scores summed in double precision, and the margin to the second-best path."""
    return _cut(pieces, word, rounded=False)


def _cut(pieces: Pieces, text: bytes, rounded: bool) -> Cut:
    trie, scores, unknown, penalty = pieces
    bases, labels, values = trie.bases, trie.labels, trie.values
    length = len(text)
    charge(_SCRATCH * length)
    never = -math.inf
    best, second = [never] * (length + 1), [never] * (length + 1)
    codes, previous = [-1] * (length + 1), [-1] * (length + 1)
    single = array("f", (0.0,))  # what is stored there is rounded to float32
    best[0] = 0.0
    for start in range(length):
        if not start & 1023:
            checkpoint()
        if start and previous[start] < 0:
            continue
        here = best[start]
        if unknown >= 0:
            score, end = here + penalty, start + 1
            if rounded:
                single[0] = score
                score = single[0]
            if previous[end] < 0 or best[end] < score:
                second[end], best[end], codes[end] = best[end], score, unknown
                previous[end] = previous[start] if codes[start] == unknown else start
            elif second[end] < score:
                second[end] = score
        node = 0
        for end in range(start, length):
            byte = text[end]
            node = bases[node] ^ byte
            if labels[node] != byte:
                break
            if end - start & _OFTEN == _OFTEN:
                checkpoint()
            value = values[node]
            if value < 0:
                continue
            end += 1
            score = here + scores[value]
            if rounded:
                single[0] = score
                score = single[0]
            if previous[end] < 0 or best[end] < score:
                second[end], best[end], codes[end], previous[end] = best[end], score, value, start
            elif second[end] < score:
                second[end] = score
    if previous[length] < 0:
        return Cut(None if length else [], 0.0, math.inf)
    found, at, gap = [], length, math.inf
    while at > 0:
        found.append(codes[at])
        # Unknown bytes in a row are one step here; the gaps between them count as well.
        for place in range(at, previous[at], -1) if codes[at] == unknown else (at,):
            gap = min(gap, best[place] - second[place])
        at = previous[at]
    found.reverse()
    return Cut(found, best[length], gap)
