"""Cache of tokenized words, and the check that a word's pieces in a text equal those of the word alone.

Where no piece reaches over the beginning of a space, the best path through a text is the best path through each of its words, but for
one thing: sums are rounded to float32 from the beginning of the text on, and where two ways are nearly as good, it is the rounding
that decides. So each word is kept with the gap between its best path and any other. A gap that is wider than all the rounding there
can be in a text settles the word; texts with another word are cut as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from oplet_text_ops.sentencepiece.columns import Cuts, cut_words
from oplet_text_ops.sentencepiece.lattice import Pieces, cut_word
from oplet_text_ops.sentencepiece.rows import joined

__all__ = ["Words"]

#: Half the distance of float32 numbers around 1, and the sums of two ways, with a tenth for what is rounded in the estimate itself.
_ROUNDING = 2.2 * 2.0**-24
#: Words and codes that are kept from one call to the next.
_KEPT_WORDS, _KEPT_CODES = 1 << 17, 1 << 20
#: Fewer words than this are cut one by one.
_FEW = 48
#: Longer words are not worth keeping; texts with one are cut as a whole.
_LONGEST = 200

Ints = NDArray[np.int64]


class Words:
    """The word cache of one model.

    Args:
        pieces: the vocabulary.
        split: normalizes words (texts between two spaces), each to one word, to a list of none or several, or to None for a word
            that cannot be tokenized by itself.
    """

    def __init__(self, pieces: Pieces, split: Callable[[Sequence[bytes]], list[bytes | list[bytes] | None]]) -> None:
        self._pieces, self._split = pieces, split
        self._scores = np.array(pieces.scores, np.float64)
        self._widest = max(float(np.abs(self._scores).max(initial=0)), abs(pieces.penalty))
        self._forget()

    def numbers(self, words: Sequence[bytes]) -> Ints:
        """Tokenize words that the cache lacks; return each word's index in its tables (`starts`, `counts` and others).

        The index is -1 for a word whose text must be tokenized as a whole. Indices are valid until the next call.
        """
        if len(self._numbers) > _KEPT_WORDS or len(self.codes) > _KEPT_CODES:
            self._forget()
        numbers = self._numbers
        unknown = set(words).difference(numbers)
        if unknown:
            self._learn(list(unknown))
        return np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))

    def settled(self, numbers: Ints, texts: Ints, count: int) -> NDArray[np.bool_]:
        """Return for each of `count` texts whether tokenizing it word by word surely gives the same as tokenizing it whole.

        Args:
            numbers: the indices of all texts' words, from `numbers`.
            texts: the index of each word's text, ascending.
        """
        good = np.ones(count, bool)
        good[texts[numbers < 0]] = False
        sizes = np.abs(self.scores[numbers])
        sums = np.cumsum(sizes)
        firsts = np.searchsorted(texts, np.arange(count))
        before = sums - sizes - np.concatenate(([0.0], sums))[firsts][texts]
        limits = self.limits[numbers]
        good[texts[self.gaps[numbers] <= _ROUNDING * limits * (before + limits * self._widest)]] = False
        return good

    def _forget(self) -> None:
        self._numbers: dict[bytes, int] = {}
        #: The codes of all words, where those of each begin, and how many it has.
        self.codes: NDArray[np.int32] = np.empty(0, np.int32)
        self.starts: Ints = np.empty(0, np.int64)
        self.counts: Ints = np.empty(0, np.int64)
        #: For each word the sum of its scores, the gap to the next best sum, and how many pieces a path through it may have.
        self.scores: NDArray[np.float64] = np.empty(0)
        self.gaps: NDArray[np.float64] = np.empty(0)
        self.limits: NDArray[np.float64] = np.empty(0)

    def _learn(self, words: list[bytes]) -> None:
        """Tokenize and cache new words."""
        parts: dict[bytes, int] = {}
        taken: list[int] = []
        shares, lost = [1] * len(words), []
        for number, found in enumerate(self._split(words)):
            if isinstance(found, bytes) and len(found) <= _LONGEST:
                taken.append(parts.setdefault(found, len(parts)))
            elif isinstance(found, list) and max(map(len, found), default=0) <= _LONGEST:
                taken += [parts.setdefault(part, len(parts)) for part in found]
                shares[number] = len(found)
            else:
                lost.append(number)
                shares[number] = 0
        cuts = self._cuts(list(parts))
        sizes = np.maximum(cuts.counts, 0).astype(np.int64)
        chosen = np.array(taken, np.int64)
        owners = np.repeat(np.arange(len(words)), shares)
        starts = np.cumsum(sizes) - sizes
        codes, counts = joined(cuts.codes, starts[chosen], sizes[chosen], owners, len(words), self._pieces.unknown)
        gaps, lengths = np.full(len(words), np.inf), np.fromiter(map(len, parts), np.float64, len(parts))
        np.minimum.at(gaps, owners, cuts.gaps[chosen])
        numbers = np.arange(len(self.starts), len(self.starts) + len(words))
        numbers[lost] = -1
        numbers[owners[cuts.counts[chosen] < 0]] = -1
        self._numbers.update(zip(words, numbers.tolist()))
        self.starts = np.concatenate((self.starts, len(self.codes) + np.cumsum(counts) - counts))
        self.counts = np.concatenate((self.counts, counts))
        self.codes = np.concatenate((self.codes, codes))
        self.scores = np.concatenate((self.scores, np.bincount(owners, np.abs(cuts.scores[chosen]), len(words))))
        self.gaps = np.concatenate((self.gaps, gaps))
        self.limits = np.concatenate((self.limits, np.bincount(owners, lengths[chosen], len(words))))

    def _cuts(self, parts: list[bytes]) -> Cuts:
        if len(parts) >= _FEW:
            return cut_words(self._pieces, parts, self._scores)
        found = [cut_word(self._pieces, part) for part in parts]
        return Cuts(
            np.array([code for cut in found for code in cut.codes or ()], np.int32),
            np.array([-1 if cut.codes is None else len(cut.codes) for cut in found], np.int32),
            np.array([cut.score for cut in found], np.float64),
            np.array([cut.gap for cut in found], np.float64),
        )
