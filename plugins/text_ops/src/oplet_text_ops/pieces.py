"""Tokens of many strings: each different word is cut once, and the results are put together by numpy."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import checkpoint

__all__ = ["Columns", "Piece", "WordCache", "joined_columns"]

Array = NDArray[Any]
#: A token: its text, its number in the vocabulary, and where it begins and ends in its word, in bytes.
Piece = tuple[bytes, int, int, int]

#: Words and bytes of words after which the cache is emptied; a mask of new words between two checkpoints.
_MOST_WORDS, _MOST_BYTES, _OFTEN = 1 << 17, 1 << 23, 0xFF


class Columns(NamedTuple):
    """Tokens by column, in order; `counts` has the number of tokens of each string, starts and ends are within the string."""

    texts: list[bytes]
    numbers: Array
    starts: Array
    ends: Array
    counts: Array


class WordCache(dict[bytes, int]):
    """From words to the numbers of their entries; a word that is not there is cut and added.

    Args:
        cut: the tokens of a word.
    """

    def __init__(self, cut: Callable[[bytes], Sequence[Piece]]) -> None:
        super().__init__()
        self._cut = cut
        self._empty()

    def _empty(self) -> None:
        self.clear()
        self._nbytes = 0
        self._texts: list[bytes] = []
        self._numbers, self._starts, self._ends = array("q"), array("q"), array("q")
        self._firsts = array("q", [0])

    def __missing__(self, word: bytes) -> int:
        entry = len(self)
        if not entry & _OFTEN:
            checkpoint()
        for text, number, start, end in self._cut(word):
            self._texts.append(text)
            self._numbers.append(number)
            self._starts.append(start)
            self._ends.append(end)
        self._firsts.append(len(self._texts))
        self._nbytes += len(word)
        self[word] = entry
        return entry

    def tokens(self, words: Sequence[bytes], places: Array, rows: Array) -> Columns:
        """The tokens of the words.

        Args:
            words: the words of all strings.
            places: where each begins in its string.
            rows: how many words the strings before it have, for each string and the end.
        """
        if len(self) > _MOST_WORDS or self._nbytes > _MOST_BYTES:
            self._empty()
        entries = np.fromiter(map(self.__getitem__, words), np.int64, len(words))
        firsts = np.array(self._firsts)
        counts = np.diff(firsts)[entries]
        ends = np.concatenate([[0], np.cumsum(counts)])
        chosen = np.repeat(firsts[entries] - ends[:-1], counts) + np.arange(ends[-1])
        shift = np.repeat(places, counts)
        return Columns(
            list(map(self._texts.__getitem__, chosen.tolist())),
            np.array(self._numbers)[chosen],
            np.array(self._starts)[chosen] + shift,
            np.array(self._ends)[chosen] + shift,
            np.diff(ends[rows]),
        )


def joined_columns(columns: Sequence[Columns]) -> tuple[list[bytes], Array, Array, Array, Array]:
    """The columns of several parts one behind the other: texts, numbers, starts, ends, and row splits in place of the counts."""
    if not columns:
        none = np.zeros(0, np.int64)
        return [], none, none, none, np.zeros(1, np.int64)
    texts = [text for column in columns for text in column.texts] if len(columns) > 1 else columns[0].texts
    counts = np.concatenate([column.counts for column in columns])
    return (
        texts,
        np.concatenate([column.numbers for column in columns]),
        np.concatenate([column.starts for column in columns]),
        np.concatenate([column.ends for column in columns]),
        np.concatenate([[0], np.cumsum(counts)]),
    )
