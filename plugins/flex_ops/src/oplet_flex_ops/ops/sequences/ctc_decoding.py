"""CTCGreedyDecoder and CTCBeamSearchDecoder: label sequences from the logits of each time step.

Numerics: tensorflow/core/kernels/ctc_decoder_ops.cc, tensorflow/core/util/ctc/{ctc_beam_search.h,ctc_beam_entry.h}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oplet import TensorType, ensure
from oplet.kernels.arrays import Array
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import computed
from oplet_flex_ops.ops.sequences.beam_search import BeamSearch

__all__ = ["ensure_lengths"]

_T = (TensorType.FLOAT32, TensorType.FLOAT64)


def ensure_lengths(inputs: Array, lengths: Array) -> None:
    """Raise an error unless logits are [time, batch, classes] with one length per sequence, at most `time`.

    Raises:
        EnsureError: the shapes do not fit, or a length is out of range.
    """
    ensure(inputs.shape[2] > 0, "the logits have no classes.")
    ensure(lengths.size == inputs.shape[1], f"there are {lengths.size} sequence lengths for a batch of {inputs.shape[1]}.")
    ensure(
        bool(((lengths >= 0) & (lengths <= inputs.shape[0])).all()),
        lambda: (
            f"the sequence lengths, from {lengths.min()} to {lengths.max()}, are not within 0 to {inputs.shape[0]}, the time."
        ),
    )


def _sparse(paths: list[list[int]]) -> tuple[Array, Array, Array]:
    """Return a sparse matrix (indices, values, shape) with one row of labels per sequence."""
    lengths = [len(path) for path in paced(paths)]
    rows = np.repeat(np.arange(len(paths)), lengths)
    columns = np.concatenate([np.arange(length) for length in paced(lengths)]) if paths else np.zeros(0, np.int64)
    labels = np.array([label for path in paced(paths, 16) for label in path], np.int64)
    return np.stack([rows, columns], 1), labels, np.array([len(paths), max(lengths, default=0)], np.int64)


class _Greedy(NamedTuple):
    merge: bool
    blank: int


def _greedy_settings(attributes: Attributes) -> _Greedy:
    return _Greedy(attributes.flag("merge_repeated", default=False), attributes.integer("blank_index", default=-1))


@computed(
    "CTCGreedyDecoder",
    "inputs: T[3], sequence_length: INT32[1] "
    "-> decoded_indices: INT64, decoded_values: INT64, decoded_shape: INT64, log_probability: T",
    _greedy_settings,
    T=_T,
)
def CTCGREEDYDECODER(given: _Greedy, inputs: Array, lengths: Array) -> list[Array]:
    ensure_lengths(inputs, lengths)
    time, batch, classes = inputs.shape
    blank = given.blank + classes if given.blank < 0 else given.blank
    ensure(0 <= blank < classes, f"blank_index is {given.blank}; there are {classes} classes.")
    best = inputs.argmax(2) if time else np.zeros((0, batch), np.intp)
    there = np.arange(time)[:, None] < lengths
    heights = np.take_along_axis(inputs, best[..., None], 2)[..., 0]
    score = -np.where(there, heights, 0).sum(0, dtype=inputs.dtype)[:, None]
    kept = there & (best != blank)
    if given.merge:
        kept[1:] &= best[1:] != best[:-1]
    paths = [best[kept[:, number], number].tolist() for number in paced(range(batch), 64)]
    return [*_sparse(paths), score]


class _Beam(NamedTuple):
    width: int
    paths: int
    merge: bool


def _beam_settings(attributes: Attributes) -> _Beam:
    found = _Beam(
        attributes.integer("beam_width", least=1),
        attributes.integer("top_paths", least=1, most=1 << 16),
        attributes.flag("merge_repeated", default=True),
    )
    ensure(found.paths <= found.width, f"top_paths is {found.paths}, more than the beam_width {found.width}.")
    return found


@computed(
    "CTCBeamSearchDecoder",
    "inputs: T[3], sequence_length: INT32[1] -> decoded_indices: top_paths*INT64, decoded_values: top_paths*INT64, "
    "decoded_shape: top_paths*INT64, log_probability: T",
    _beam_settings,
    T=_T,
)
def CTCBEAMSEARCHDECODER(given: _Beam, inputs: Array, lengths: Array) -> list[Array]:
    ensure_lengths(inputs, lengths)
    found: list[list[list[int]]] = [[] for _ in paced(range(given.paths))]
    scores = np.zeros((inputs.shape[1], given.paths), inputs.dtype)
    for number, length in enumerate(paced(listed(lengths), 1)):
        search = BeamSearch(given.width, inputs.shape[2])
        for step in inputs[:length, number]:
            search.step(step)
        best = search.best(given.paths, given.merge)
        ensure(len(best) == given.paths, f"there are {len(best)} paths, fewer than the {given.paths} of top_paths.")
        for rank, (path, score) in enumerate(paced(best)):
            found[rank].append(path)
            scores[number, rank] = score
    parts: list[Any] = [_sparse(paths) for paths in found]
    return [*(part[kind] for kind in range(3) for part in parts), scores]
