"""Values in Huffman codes, which tables are led through: an entry is a value, or where the next table is and how many bits choose from it.

What each place of the bits would give is worked out for many places at once; then the places that are taken are followed.

Numerics: tensorflow/lite/micro/kernels/decode_state_huffman.cc of tflite-micro
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import TensorType, charge, checkpoint, ensure
from oplet.kernels.arrays import Array
from oplet_signal_ops.decoding.coded import Coded

__all__ = ["TYPES", "decode"]

TYPES = (TensorType.INT8, TensorType.INT16)
#: Places of bits that are worked out at once.
_AT_ONCE = 1 << 15
#: Tables that one code may lead through.
_MOST_TABLES = 64
#: Bytes behind the codes that may be looked at.
_BEHIND = 8 + 2 * _MOST_TABLES


class _Entries(NamedTuple):
    """The tables, one behind the other."""

    found: Array  #: whether the entry is a value
    bits: Array  #: of a value: how many of the last bits it took; else one less than choose from the next table
    value: Array  #: the value, or where the next table begins, from this entry


def decode(coded: Coded) -> None:
    """Decode a Huffman-coded tensor into its output.

    Raises:
        EnsureError: the codes end before all values are decoded, or a code leads beyond the tables.
    """
    coded.ensure_version()
    output = coded.output
    wide = bool(coded.telling[5] & 1)
    ensure(wide or output.type == TensorType.INT8, lambda: f"{output} must be of INT8, as its tables have entries of 16 bits.")
    charge(8 * coded.telling.size + coded.source.size + _BEHIND)
    entries = _entries(coded, wide)
    first = (int(coded.telling[5]) >> 4) + 1
    total = 8 * coded.source.size
    padded = np.concatenate([coded.source, np.zeros(_BEHIND, np.uint8)])
    flat = output.data.reshape(-1)
    place = done = 0
    while done < flat.size:
        checkpoint()
        ensure(place < total, lambda: f"the codes for {output} end after {done} of {flat.size} values.")  # noqa: B023 # at once
        size = min(_AT_ONCE, total - place)
        values, lengths = _worked_out(entries, padded, place, size, first)
        taken = _followed(lengths, flat.size - done)
        ensure(bool((lengths[taken] >= 0).all()), lambda: f"a code for {output} leads beyond the tables.")
        end = place + int(taken[-1]) + int(lengths[taken[-1]])
        ensure(end <= total, lambda: f"the codes for {output} end within a value.")
        flat[done : done + len(taken)] = values[taken].astype(flat.dtype)
        done, place = done + len(taken), end


def _entries(coded: Coded, wide: bool) -> _Entries:
    table = coded.table(np.dtype("<u4" if wide else "<u2")).astype(np.int64)
    low = 27 if wide else 11
    return _Entries(table >> (low + 4) & 1 == 1, table >> low & 15, table & ((1 << low) - 1))


def _worked_out(entries: _Entries, source: Array, place: int, size: int, first: int) -> tuple[Array, Array]:
    """Return the value that begins at each of `size` places, and how many bits it takes; -1 where none does."""
    starts = place + np.arange(size)
    values, lengths = np.zeros(size, np.int64), np.full(size, -1, np.int64)
    # Of those that are under way: which they are, bits taken so far, bits taken last, and the entry.
    which, taken, last, entry = np.arange(size), np.zeros(size, np.int64), np.full(size, first), np.zeros(size, np.int64)
    base = np.zeros(size, np.int64)
    for _ in range(_MOST_TABLES):
        at = starts[which] + taken
        known = at >> 3 < len(source) - 4
        which, taken, last, base, at = which[known], taken[known], last[known], base[known], at[known]
        entry = base + _bits(source, at, last)
        known = entry < len(entries.found)
        which, taken, last, entry = which[known], taken[known], last[known], entry[known]
        here = entries.found[entry]
        done = which[here]
        values[done] = entries.value[entry[here]]
        lengths[done] = taken[here] + np.minimum(last[here], entries.bits[entry[here]])
        which, entry, taken = which[~here], entry[~here], taken[~here] + last[~here]
        if not len(which):
            break
        base, last = entry + entries.value[entry], entries.bits[entry] + 1
    return values, lengths


def _bits(source: Array, at: Array, count: Array) -> Array:
    """Return as many bits, 16 at most, from each place on as a number."""
    byte = at >> 3
    word = source[byte].astype(np.int64) << 16 | source[byte + 1].astype(np.int64) << 8 | source[byte + 2]
    found: Array = word >> (24 - (at & 7) - count) & ((1 << count) - 1)
    return found


def _followed(lengths: Array, most: int) -> Array:
    """Return the places that are taken one after the other, up to `most` or the first that leads out of them."""
    steps, place = lengths.tolist(), 0
    taken: list[int] = []
    while place < len(steps) and len(taken) < most:
        taken.append(place)
        if steps[place] <= 0:
            # Nothing more to follow: no value, or one that takes no bits and is all that comes.
            taken += [place] * (min(most, _AT_ONCE) - len(taken) if steps[place] == 0 else 0)
            break
        place += steps[place]
    return np.array(taken)
