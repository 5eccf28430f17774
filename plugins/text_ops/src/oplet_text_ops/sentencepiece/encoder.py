"""Tokenizer of a FlatBuffer sentencepiece model: text to ids.

Format: encoder_config.fbs of tensorflow/text; numerics: optimized_encoder.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oplet import ensure
from oplet.kernels.strings import StringMeter
from oplet_text_ops.nodes import parts
from oplet_text_ops.sentencepiece.lattice import Pieces, best_path
from oplet_text_ops.sentencepiece.normalizer import Normalizer, Spaces
from oplet_text_ops.sentencepiece.rows import joined, with_ends
from oplet_text_ops.sentencepiece.trie import PieceTrie
from oplet_text_ops.sentencepiece.words import Words
from oplet_text_ops.tables.flat_table import FlatTable

__all__ = ["Encoder"]

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

#: The fields of EncoderConfig, by their order in the schema.
_VERSION, _START, _END, _UNKNOWN, _PENALTY, _OFFSET, _PIECES, _SCORES, _MERGE, _PREFIX, _ESCAPE, _PREFIXES, _TEXTS = range(13)
_NODES = 0  # the field of a Trie
#: Bytes of scratch for each byte of the texts that are cut at once, their words with what is known of each; and how many these are.
_SCRATCH, _AT_ONCE = 64, 1 << 18


class Encoder:
    """The tokenizer of one model.

    Args:
        table: its FlatBuffer.

    Raises:
        EnsureError: the FlatBuffer is damaged, or is no sentencepiece model.
    """

    def __init__(self, table: bytes) -> None:
        config = FlatTable(table, "the sentencepiece model")
        version = config.number(_VERSION, "b")
        ensure(version == 0, lambda: f"its tokenizer is of version {version}, and 0 is sentencepiece; convert the model again.")
        scores = config.vector(_SCORES, np.float32).astype(np.float32)
        units = _trie(config, _PIECES)
        ensure(
            len(units) > 0 and bool(np.isfinite(scores).all()),
            "its sentencepiece model has no pieces, or scores that are no numbers; convert the model again.",
        )
        penalty = float(config.number(_PENALTY, "f"))
        ensure(
            np.isfinite(penalty), "the score of unknown bytes in its sentencepiece model is no number; convert the model again."
        )
        trie = PieceTrie(units, len(scores))
        self._pieces = Pieces(trie, scores.tolist(), config.number(_UNKNOWN, "i", -1), penalty)
        self._start, self._end, self._offset = (config.number(field, "i") for field in (_START, _END, _OFFSET))
        spaces = Spaces(*(bool(config.number(field, "?")) for field in (_PREFIX, _MERGE, _ESCAPE)))
        prefixes = _trie(config, _PREFIXES)
        replacements = config.vector(_TEXTS, np.uint8).tobytes()
        self._normalizer = Normalizer(PieceTrie(prefixes), replacements, spaces)
        by_words = (
            self._normalizer.by_words
            and trie.parts_at_spaces()
            and not (self._pieces.unknown >= 0 and (trie.value == self._pieces.unknown).any())
        )
        self._words = Words(self._pieces, self._normalizer.words) if by_words else None

    def encode(self, texts: Sequence[bytes], *, first: bool, last: bool, reverse: bool) -> tuple[Codes, Ints]:
        """Tokenize texts; return all ids concatenated, and their row splits.

        Args:
            texts: UTF-8, or any bytes.
            first: whether to begin each text with the begin-of-sentence id.
            last: whether to end each text with the end-of-sentence id.
            reverse: whether to reverse the ids of each text, those added included.
        """
        meter, columns = StringMeter(), [(np.empty(0, np.int32), np.empty(0, np.int64))]
        for part in parts(texts, _SCRATCH, _AT_ONCE):
            columns.append(self._by_words(self._words, part) if self._words else self._whole(part))
            meter.add(4 * sum(column.nbytes for column in columns[-1]), 0)
        codes, sizes = (np.concatenate(column) for column in zip(*columns))
        if self._offset:
            known = codes != self._pieces.unknown
            codes[known] += np.int32(self._offset)
        codes, sizes = with_ends(codes, sizes, self._start if first else None, self._end if last else None, reverse)
        return codes, np.concatenate(([0], np.cumsum(sizes)))

    def _whole(self, texts: Sequence[bytes]) -> tuple[Codes, Ints]:
        """Tokenize each text as a whole."""
        rows = [best_path(self._pieces, self._normalizer.text(text)) for text in texts]
        return np.array([code for row in rows for code in row], np.int32), np.array([len(row) for row in rows], np.int64)

    def _by_words(self, words: Words, texts: Sequence[bytes]) -> tuple[Codes, Ints]:
        """Tokenize the texts word by word with a cache; texts for which that would differ are tokenized as a whole."""
        split = [text.split(b" ") for text in texts]
        found = [word for row in split for word in row]
        rows = np.repeat(np.arange(len(texts)), [len(row) for row in split])
        numbers = words.numbers(found)
        good = words.settled(numbers, rows, len(texts))
        starts, counts = words.starts[numbers], words.counts[numbers]
        source = words.codes
        if not good.all():
            bad = np.flatnonzero(~good)
            codes, sizes = self._whole([texts[row] for row in bad.tolist()])
            kept = good[rows]
            rows = np.concatenate((rows[kept], bad))
            order = np.argsort(rows, kind="stable")
            rows = rows[order]
            starts = np.concatenate((starts[kept], len(source) + np.cumsum(sizes) - sizes))[order]
            counts = np.concatenate((counts[kept], sizes))[order]
            source = np.concatenate((source, codes))
        return joined(source, starts, counts, rows, len(texts), self._pieces.unknown)


def _trie(config: FlatTable, field: int) -> NDArray[np.uint32]:
    """Return a trie's units from the config; empty if it is missing."""
    table = config.table(field)
    return np.empty(0, np.uint32) if table is None else table.vector(_NODES, np.uint32).astype(np.uint32)
