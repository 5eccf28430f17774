"""EditDistance and ReverseSequence.

Numerics: tensorflow/core/kernels/{edit_distance_op.cc,reverse_sequence_op.cc}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from oplet import Node, TensorType, charge, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import computed, filled, zeros
from oplet_flex_ops.ops.sparse.coordinates import coordinates
from oplet_flex_ops.positions import row_numbers
from oplet_flex_ops.signature import INDICES, NUMBERS

#: Bytes of a sequence that waits for the one that it is compared with.
_SEQUENCE = 240


def _levenshtein(first: Array, second: Array) -> int:
    """Return the Levenshtein distance: the least number of insertions, deletions and substitutions between two sequences."""
    steps = np.arange(second.size + 1)
    row = steps
    for number, item in enumerate(first.tolist()):
        checkpoint()
        replaced = row[:-1] + np.not_equal(second, item).astype(np.int64)
        best = np.concatenate(([number + 1], np.minimum(replaced, row[1:] + 1)))
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])


def _rows(indices: Array, values: Array, outer: tuple[int, ...]) -> Iterator[tuple[int, Array]]:
    """Yield (row number, values) of each sequence of a sparse tensor."""
    places = row_numbers(indices[:, :-1], outer)
    ensure(bool((places[1:] >= places[:-1]).all()), "the index vectors are not in order.")
    ends = (places[1:] != places[:-1]).nonzero()[0] + 1
    for start, end in zip([0, *listed(ends)], [*listed(ends), places.size]):
        if end > start:
            yield int(places[start]), values[start:end]


@computed(
    "EditDistance",
    "hypothesis_indices: INT64[2], hypothesis_values: T[1], hypothesis_shape: INT64[1], truth_indices: INT64[2], "
    "truth_values: T[1], truth_shape: INT64[1] -> output: FLOAT32",
    lambda attributes: attributes.flag("normalize", default=True),
    T=(*NUMBERS, TensorType.BOOL, TensorType.STRING),
)
def EDITDISTANCE(normalize: bool, *operands: Array) -> Array:
    given, truth = coordinates(*operands[:3]), coordinates(*operands[3:])
    ensure(len(given.shape) == len(truth.shape) >= 2, "both sparse tensors must have the same number of axes, 2 or more.")
    outer = tuple(max(a, b) for a, b in zip(given.shape[:-1], truth.shape[:-1]))
    output = zeros(outer, np.float32)
    flat = output.reshape(-1)
    charge(_SEQUENCE * given.values.size)
    guesses = dict(paced(_rows(operands[0], given.values, outer)))
    nothing = given.values[:0]
    for place, wanted in paced(_rows(operands[3], truth.values, outer), 64):
        distance = _levenshtein(wanted, guesses.pop(place, nothing))
        flat[place] = np.float32(distance) / np.float32(wanted.size) if normalize else distance
    for place, guess in paced(guesses.items()):
        flat[place] = np.inf if normalize else guess.size
    return output


class _Axes(NamedTuple):
    time: int
    batch: int


def _axes(attributes: Attributes) -> _Axes:
    return _Axes(attributes.integer("seq_dim"), attributes.integer("batch_dim", default=0))


def _reverse_shapes(node: Node, given: _Axes) -> list[Shape]:
    source, lengths = node.inputs
    ensure(
        0 <= given.time < source.ndim and 0 <= given.batch < source.ndim and given.time != given.batch,
        f"seq_dim {given.time} and batch_dim {given.batch} must be two axes of {source}.",
    )
    count = source.shape[given.batch]
    ensure(lengths.shape == (count,), f"{lengths} must have the lengths of {count} sequences.")
    return [source.shape]


@filled("ReverseSequence", "input: T, seq_lengths: Tlen[1] -> output: T", _reverse_shapes, _axes, Tlen=INDICES)
def REVERSESEQUENCE(given: _Axes, outputs: list[Array], source: Array, lengths: Array) -> None:
    longest = source.shape[given.time]
    ensure(bool(((lengths >= 0) & (lengths <= longest)).all()), f"the lengths of the sequences are not within 0 to {longest}.")
    sequences: Any = np.moveaxis(source, (given.batch, given.time), (0, 1))
    targets = np.moveaxis(outputs[0], (given.batch, given.time), (0, 1))
    targets[...] = sequences
    for target, sequence, length in paced(zip(targets, sequences, listed(lengths)), 64):
        target[:length] = sequence[:length][::-1]
