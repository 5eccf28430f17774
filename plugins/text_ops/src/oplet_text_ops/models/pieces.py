"""Tokens of many strings: each distinct word is tokenized once and cached, numpy combines the results."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import ensure
from oplet.kernels.strings import StringMeter
from oplet_text_ops.tables.flat_table import FlatTable

__all__ = ["Columns", "Piece", "WordCache", "joined_columns"]

#: Bytes of a reference.
_REFERENCE = 8


class Detokenizer:
    """Joins WordPiece token ids to text.

    Args:
        buffer: the FlatBuffer of the config.

    Raises:
        EnsureError: the config has no vocabulary.
    """

    def __init__(self, buffer: bytes) -> None:
        table = FlatTable(buffer, "the WordPiece vocabulary")
        ensure(
            table.number(11, "?"),
            "the WordPiece vocabulary has no tokens by number; build its model with support_detokenization=True.",
        )
        self._tokens = table.strings(12)
        self._goes_on = table.vector(13, np.uint8).astype(bool).tolist()
        self._indicator = table.string(5)

    def text(self, numbers: Sequence[int], meter: StringMeter) -> bytes:
        """Return the text of token ids, words separated by spaces; a leading suffix token keeps its indicator ("##").

        Raises:
            EnsureError: a number is not in the vocabulary.
        """
        tokens, goes_on = self._tokens, self._goes_on
        size = min(len(tokens), len(goes_on))
        parts: list[bytes] = []
        meter.hold(2 * _REFERENCE * len(numbers))
        for number in numbers:
            if not 0 <= number < size:
                ensure(False, f"token {number} is not in the vocabulary of {size} tokens.")
            if goes_on[number]:
                if not parts:
                    parts.append(self._indicator)
            elif parts:
                parts.append(b" ")
            parts.append(tokens[number])
        return meter.join(b"", parts)


Array = NDArray[Any]
#: A token: its text, its number in the vocabulary, and where it begins and ends in its word, in bytes.
Piece = tuple[bytes, int, int, int]

#: Words, and bytes of words and tokens, after which the cache is emptied.
_MOST_WORDS, _MOST_BYTES = 1 << 17, 1 << 24


class Columns(NamedTuple):
    """The tokens of several strings as arrays: text, vocabulary id, start and end (byte offsets in the string).

    `counts` has the number of tokens per string. The texts are a list, or an array of objects where there may be many.
    """

    texts: list[bytes] | Array
    numbers: Array
    starts: Array
    ends: Array
    counts: Array


class WordCache:
    """A cache of tokenized words.

    Args:
        cut: the function that tokenizes words and returns their tokens.
    """

    def __init__(self, cut: Callable[[Sequence[bytes]], Columns]) -> None:
        self._cut = cut
        self._empty()

    def _empty(self) -> None:
        self._known: dict[bytes, int] = {}
        self._nbytes = 0
        self._texts = np.zeros(0, object)
        self._numbers, self._starts, self._ends = array("q"), array("q"), array("q")
        self._firsts = array("q", [0])

    def _add(self, words: Sequence[bytes]) -> None:
        made = self._cut(words)
        self._known.update(zip(words, range(len(self._known), len(self._known) + len(words))))
        self._nbytes += sum(map(len, words)) + sum(map(len, made.texts))
        last = len(self._texts)
        self._texts = np.concatenate([self._texts, np.fromiter(made.texts, object, len(made.texts))])
        for held, new in (
            (self._numbers, made.numbers), (self._starts, made.starts), (self._ends, made.ends),
            (self._firsts, last + np.cumsum(made.counts)),
        ):  # fmt: skip
            held.frombytes(np.ascontiguousarray(new, np.int64).tobytes())

    def _entries(self, words: Sequence[bytes]) -> Array:
        """Return the cache entry number of each word; tokenize and add new words."""
        known = self._known
        try:
            return np.fromiter(map(known.__getitem__, words), np.int64, len(words))
        except KeyError:
            self._add(list(set(words).difference(known)))
            return np.fromiter(map(known.__getitem__, words), np.int64, len(words))

    def tokens(self, words: Sequence[bytes], places: Array, rows: Array) -> Columns:
        """Return the tokens of the words as columns.

        Args:
            words: the words of all strings.
            places: the byte offset of each word in its string.
            rows: row splits: string i has the words rows[i] .. rows[i + 1] - 1.
        """
        if len(self._known) > _MOST_WORDS or self._nbytes > _MOST_BYTES:
            self._empty()
        entries = self._entries(words)
        firsts = np.array(self._firsts)
        counts = np.diff(firsts)[entries]
        ends = np.concatenate([[0], np.cumsum(counts)])
        chosen = np.repeat(firsts[entries] - ends[:-1], counts) + np.arange(ends[-1])
        shift = np.repeat(places, counts)
        return Columns(
            self._texts[chosen],
            np.array(self._numbers)[chosen],
            np.array(self._starts)[chosen] + shift,
            np.array(self._ends)[chosen] + shift,
            np.diff(ends[rows]),
        )


def joined_columns(columns: Sequence[Columns]) -> tuple[Array, Array, Array, Array, Array]:
    """Concatenate the tokens of several batches: return texts, ids, starts, ends, and row splits in place of the counts."""
    if not columns:
        none = np.zeros(0, np.int64)
        return np.zeros(0, object), none, none, none, np.zeros(1, np.int64)
    counts = np.concatenate([column.counts for column in columns])
    return (
        np.concatenate([column.texts for column in columns]),
        np.concatenate([column.numbers for column in columns]),
        np.concatenate([column.starts for column in columns]),
        np.concatenate([column.ends for column in columns]),
        np.concatenate([[0], np.cumsum(counts)]),
    )
