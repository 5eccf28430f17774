"""Best-path (Viterbi) tokenization of many words at once with numpy.

All words stand side by side, the longest first, so that those which have a byte in column t are the first ones. The steps over each
column are made for all words together: the bytes that no piece has, then the pieces of one byte, of two and so on.

Sums are not rounded to float32 here, since `oplet_text_ops.sentencepiece.words` needs the exact gap between the best path and any
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import charge, checkpoint
from oplet_text_ops.sentencepiece.lattice import Pieces
from oplet_text_ops.sentencepiece.trie import together

__all__ = ["Cuts", "cut_words"]

Ints = NDArray[np.int32]


class Cuts(NamedTuple):
    """Tokenized words, as arrays.

    Attributes:
        codes: the ids of the pieces of all words, one word after the other.
        counts: the number of pieces of each word; -1 for a word that cannot be tokenized.
        scores: the score of each word: the sum of its pieces' scores.
        gaps: the smallest margin of each word: best minus second-best score at the end of any of its pieces.
    """

    codes: Ints
    counts: Ints
    scores: NDArray[np.float64]
    gaps: NDArray[np.float64]


class _Columns(NamedTuple):
    """Layout of the words' positions: position t of the word of rank r is `first[t] + r`, for the `alive[t]` words that long."""

    order: NDArray[np.int64]
    lengths: NDArray[np.int64]
    alive: NDArray[np.int64]
    first: NDArray[np.int64]


def cut_words(pieces: Pieces, words: Sequence[bytes], scores: NDArray[np.float64]) -> Cuts:
    """Tokenize non-empty words into the pieces of the highest total score (Viterbi), many words at a time.

    Args:
        pieces: the vocabulary, in which no piece may have the id of unknown bytes.
        words: the words.
        scores: the pieces' scores, by id.
    """
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    charge(64 * int(lengths.sum() + len(words)))
    order = np.argsort(-lengths, kind="stable")
    lengths = lengths[order]
    alive = len(words) - np.searchsorted(lengths[::-1], np.arange(lengths[0] + 2))
    first = np.concatenate(([0], np.cumsum(alive)))
    columns = _Columns(order, lengths, alive, first)
    places = int(first[-1])
    best, second = np.full(places, -np.inf), np.full(places, -np.inf)
    codes, steps = np.full(places, -1, np.int32), np.zeros(places, np.int32)
    best[: alive[0]] = 0
    edges = _edges(pieces, words, scores, columns)
    for column in range(int(lengths[0])):
        checkpoint()
        if pieces.unknown >= 0:
            count = alive[column + 1]
            here = slice(first[column], first[column] + count)
            there = slice(first[column + 1], first[column + 1] + count)
            score, known = best[here] + pieces.penalty, best[there]
            better = score > known
            second[there] = np.maximum(second[there], np.minimum(known, score))
            np.copyto(best[there], score, where=better)
            codes[there][better] = pieces.unknown
            steps[there][better] = 1
        for length, bounds, source, target, value, weight in edges:
            begin, end = bounds[column], bounds[column + 1]
            if begin == end:
                continue
            ends, score = target[begin:end], best[source[begin:end]] + weight[begin:end]
            known = best[ends]
            second[ends] = np.maximum(second[ends], np.minimum(known, score))
            better = score > known
            ends = ends[better]
            best[ends], codes[ends], steps[ends] = score[better], value[begin:end][better], length
    return _paths(pieces, columns, best, second, codes, steps)


def _edges(
    pieces: Pieces, words: Sequence[bytes], scores: NDArray[np.float64], columns: _Columns
) -> list[tuple[int, list[int], Any, Any, Any, Any]]:
    """Collect the candidate pieces by length: for each, where those starting in each column lie, their start and end positions,
    ids and scores.
    """
    order, lengths, alive, first = columns
    text, begins = together([words[rank] for rank in order.tolist()], lengths)
    counts = alive[1:]  # the words that have a byte in each column
    total = int(counts.sum())
    column = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    rank = np.arange(total, dtype=np.int32) - np.repeat(np.cumsum(counts) - counts, counts).astype(np.int32)
    at = begins[rank].astype(np.int32) + column
    source = first[column].astype(np.int32) + rank
    edges = []
    for length, here, value in pieces.trie.matches(text, at):
        columns_here = column[here]
        bounds = np.searchsorted(columns_here, np.arange(len(counts) + 1)).tolist()
        target = first[columns_here + length] + rank[here]
        edges.append((length, bounds, source[here], target, value, scores[value]))
    return edges


def _paths(pieces: Pieces, columns: _Columns, best: Any, second: Any, codes: NDArray[np.int32], steps: NDArray[np.int32]) -> Cuts:
    """Trace the best paths back from the words' ends."""
    order, lengths, _, first = columns
    count = len(order)
    ranks, at = np.arange(count), lengths.copy()
    ends = first[at] + ranks
    scores, reached = best[ends], steps[ends] > 0
    gaps = np.full(count, np.inf)
    ranks, at = ranks[reached], at[reached]
    words, taken = [], []
    while len(ranks):
        places = first[at] + ranks
        np.minimum.at(gaps, ranks, best[places] - second[places])
        words.append(ranks)
        taken.append(codes[places])
        at = at - steps[places]
        on = at > 0
        ranks, at = ranks[on], at[on]
    word = np.concatenate([*words[::-1], np.empty(0, np.int64)]).astype(np.int64)
    code = np.concatenate([*taken[::-1], np.empty(0, np.int32)]).astype(np.int32)
    word = order[word]
    sorting = np.argsort(word, kind="stable")
    word, code = word[sorting], code[sorting]
    again = np.zeros(len(code), bool)  # unknown bytes in a row are one
    again[1:] = (code[1:] == pieces.unknown) & (code[:-1] == pieces.unknown) & (word[1:] == word[:-1])
    word, code = word[~again], code[~again]
    counts = np.bincount(word, minlength=count).astype(np.int32)
    counts[order[~reached]] = -1
    back = np.empty(count, np.int64)
    back[order] = np.arange(count)
    return Cuts(code, counts, scores[back], gaps[back])
