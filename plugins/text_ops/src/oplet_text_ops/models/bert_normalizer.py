"""FastBertNormalizerModel: replacement text of each code point, as a trie and a string pool.

Numerics: core/kernels/fast_bert_normalizer.h and fast_bert_normalizer_model.fbs of tensorflow/text.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import charge, ensure
from oplet_text_ops.tables.double_array import DoubleArray
from oplet_text_ops.tables.flat_table import FlatTable
from oplet_text_ops.texts.utf8 import Joined, decode

__all__ = ["BertNormalizer", "Normalized"]

Array = NDArray[Any]
#: Entries of code points that were not looked up yet, and of those that stay as they are.
_UNSEEN, _SAME = -1, 0
#: Bytes of scratch for each byte that is made.
_MADE = 48


class Normalized(NamedTuple):
    """Normalized texts, and the offset in the original of each byte and the end; `counts`: the number of offsets per text."""

    texts: list[bytes]
    offsets: Array
    counts: Array


class BertNormalizer:
    """Normalizes texts for BERT: code points are replaced by the model's texts. Invalid UTF-8 bytes stay.

    Args:
        buffer: the FlatBuffer of the model.
    """

    def __init__(self, buffer: bytes) -> None:
        table = FlatTable(buffer, "the model of FastBertNormalizer")
        ensure(table.has(1), "the model of FastBertNormalizer has no trie.")
        ensure(table.has(3), "the model of FastBertNormalizer has no texts.")
        self._trie = DoubleArray(table.vector(1, np.uint32))
        self._pool = table.vector(3, np.uint8)
        charge(4 << 20)
        #: By code point: 0, or where its text begins in the pool and how long it is, with bit 30 set, as the trie has it.
        #: The last one is for -1, bytes that are not UTF-8.
        self._entries = np.full(0x110001, _UNSEEN, np.int32)
        self._entries[-1] = _SAME
        self._entries[0] = self._checked(table.number(2, "i"))
        self._bytes = self._ascii_table()

    def _checked(self, value: int) -> int:
        """Return `value` from the trie, or 0 if the code point stays; a replacement beyond the string pool counts as empty,
        as in TensorFlow Text.
        """
        if value < 0 or not value >> 30 & 1:
            return _SAME
        start, size = value >> 6 & 0xFFFFFF, value & 0x3F
        return value if start + size <= len(self._pool) else 1 << 30

    def _look_up(self, points: Array) -> None:
        for point in points.tolist():
            node = self._trie.walk(0, chr(point).encode())
            self._entries[point] = self._checked(self._trie.value(node)) if node >= 0 else _SAME

    def _ascii_table(self) -> bytes | None:
        """Return a bytes.translate table for ASCII; None if a character is replaced by no or several bytes."""
        self._look_up(np.arange(1, 0x80))
        entries = self._entries[:0x80]
        if ((entries != _SAME) & (entries & 0x3F != 1)).any():
            return None
        table = np.arange(256, dtype=np.uint8)
        changed = np.flatnonzero(entries)
        table[changed] = self._pool[entries[changed] >> 6 & 0xFFFFFF]
        return table.tobytes()

    def normalize(self, texts: Sequence[bytes], offsets: bool) -> Normalized:
        """Normalize texts; with `offsets`, also return the offset of each byte in the original."""
        table = self._bytes
        if table is None:
            return self._replaced(texts, offsets)
        plain = np.fromiter((text.isascii() for text in texts), bool, len(texts))
        made = [text.translate(table) if ascii else text for text, ascii in zip(texts, plain.tolist())]
        counts = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
        others = np.flatnonzero(~plain)
        if len(others):
            places = others.tolist()
            found = self._replaced([texts[place] for place in places], offsets)
            for place, text in zip(places, found.texts):
                made[place] = text
            counts[others] = found.counts
        if not offsets:
            return Normalized(made, np.zeros(0, np.int64), counts)
        firsts = np.cumsum(counts) - counts
        everywhere = np.arange(counts.sum()) - np.repeat(firsts, counts)
        if len(others):
            everywhere[np.repeat(~plain, counts)] = found.offsets
        return Normalized(made, everywhere, counts)

    def _replaced(self, texts: Sequence[bytes], offsets: bool) -> Normalized:
        """Do `normalize` character by character."""
        joined = Joined(texts)
        data = joined.data
        begins, points = decode(data)
        ends = np.append(begins[1:], len(data))
        entries = self._entries[points]
        unseen = entries == _UNSEEN
        if unseen.any():
            self._look_up(np.unique(points[unseen]))
            entries = self._entries[points]
        # The line feeds between the texts stay, whatever the model makes of line feeds, and stand for the offsets of the ends.
        feeds = np.searchsorted(begins, joined.line_feeds)
        entries[feeds] = _SAME
        changed = entries != _SAME
        sizes = np.where(changed, entries & 0x3F, ends - begins)
        sources = np.where(changed, len(data) + (entries >> 6 & 0xFFFFFF), begins)
        stops = np.cumsum(sizes)
        charge(_MADE * int(stops[-1]) if len(stops) else 0)
        step = np.arange(stops[-1] if len(stops) else 0) - np.repeat(stops - sizes, sizes)
        everything = np.concatenate([np.frombuffer(data, np.uint8), self._pool])
        new = everything[np.repeat(sources, sizes) + step].tobytes()
        bounds = [0, *stops[feeds].tolist()]
        made = [new[start : end - 1] for start, end in itertools.pairwise(bounds)]
        counts = np.diff(bounds)
        if not offsets:
            return Normalized(made, np.zeros(0, np.int64), counts)
        places = np.repeat(begins, sizes) + np.where(np.repeat(changed, sizes), 0, step)
        return Normalized(made, places - np.repeat(joined.starts[:-1], counts), counts)
