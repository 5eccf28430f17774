"""Values of one bit in words of 32: how they are packed, and in how many two rows of them differ.

Bit 0 stands for +1 and bit 1 for -1. A row of channels has its first in the lowest bit of its first word; the bits that are left over in
its last word are 0.

    >>> pack(np.array([[False, True, True]])).tolist(), words_for(33)
    ([[6]], 2)
    >>> unpack(np.array([[6]], np.int32), 3).tolist()
    [[0, 1, 1]]
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from oplet import checkpoint
from oplet.kernels.arrays import Array

__all__ = ["AT_ONCE", "WORD", "bits_in", "count_differences", "long_words", "pack", "unpack", "words_for"]

#: Bits of a word.
WORD = 32
#: Pairs of words of 64 bits that are compared at once: as many as stay in a processor's cache.
AT_ONCE = 1 << 15


def words_for(channels: int) -> int:
    """Return the number of 32-bit words that hold this many bits."""
    return -(-channels // WORD)


def pack(bits: Array) -> Array:
    """Pack each row of Booleans (rows, channels) into int32 words, the first in the lowest bit; unused bits are 0."""
    rows, channels = bits.shape
    packed = np.packbits(bits, axis=-1, bitorder="little")
    if channels % WORD:
        whole = np.zeros((rows, 4 * words_for(channels)), np.uint8)
        whole[:, : packed.shape[1]] = packed
        packed = whole
    return packed.view("<i4")


def unpack(words: Array, channels: int) -> Array:
    """Unpack rows of int32 words into (rows, channels) bytes that are 0 or 1."""
    rows = np.ascontiguousarray(words, "<i4").view(np.uint8)
    return np.unpackbits(rows, axis=-1, count=channels, bitorder="little")


def long_words(words: Array) -> Array:
    """Return rows of 32-bit words as uint64 words, of half the number; a row of odd length is padded with a zero word."""
    if words.shape[1] % 2:
        words = np.concatenate([words, np.zeros((len(words), 1), words.dtype)], axis=1)
    return np.ascontiguousarray(words).view(np.uint64)


def count_differences(rows: Array, columns: Array, totals: Array, scratch: Array, counts: Array) -> None:
    """Compute the Hamming distance between each row and each column (XOR, then population count).

    Args:
        rows: uint64, (rows, words).
        columns: uint64, (words, columns).
        totals: receives the distances, unsigned, (rows, columns).
        scratch: uint64, at least one per column; a larger one is faster.
        counts: scratch, uint8, of the size of `scratch`.
    """
    height, width = totals.shape
    totals.fill(0)
    if not totals.size:
        return
    block = max(1, scratch.size // width)
    for start in range(0, height, block):
        part = totals[start : start + block]
        differing = scratch[: part.size].reshape(part.shape)
        counted = counts[: part.size].reshape(part.shape)
        for word in range(len(columns)):
            checkpoint()
            np.bitwise_xor(rows[start : start + block, word, None], columns[word], differing)
            _count_bits(differing, counted)
            np.add(part, counted, part)


def bits_in(words: Array) -> Array:
    """Return the population count of each 32-bit word, as int64."""
    found: Array = _bits_of_16()[np.ascontiguousarray(words).view(np.uint16).reshape(*words.shape, 2)].sum(-1, dtype=np.int64)
    return found


@cache
def _bits_of_16() -> Array:
    """Return how many bits each number of 16 bits has, as bytes."""
    bits = np.unpackbits(np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(-1, 2), axis=1)
    found: Array = bits.sum(1, dtype=np.uint8)
    return found


def _count_by_table(words: Array, counts: Array) -> None:
    """Count the bits of each word of 64, with a numpy that has no instruction for it."""
    quarters: Any = _bits_of_16()[words.view(np.uint16).reshape(*words.shape, 4)]
    np.sum(quarters, axis=-1, dtype=np.uint8, out=counts)


_count_bits: Any = getattr(np, "bitwise_count", None) or _count_by_table  # numpy 2 has it
