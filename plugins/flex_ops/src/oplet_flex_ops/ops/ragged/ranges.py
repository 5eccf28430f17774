"""RaggedRange and RaggedGather: rows of number sequences, and rows selected by index.

Numerics: tensorflow/core/kernels/{ragged_range_op.cc,ragged_gather_op.cc}

Checked row splits of ragged tensors, and positions derived from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import TensorType, ensure
from oplet.kernels.arrays import Array
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import computed, reserve
from oplet_flex_ops.positions import checked

_SPLITS = (TensorType.INT64, TensorType.INT32)


@computed(
    "RaggedRange",
    "starts: T, limits: T, deltas: T -> rt_nested_splits: Tsplits, rt_dense_values: T",
    lambda attributes: np.dtype(
        np.int32 if attributes.type("Tsplits", *_SPLITS, default=TensorType.INT64) == TensorType.INT32 else np.int64
    ),
    T=(TensorType.INT32, TensorType.INT64, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.BFLOAT16),
    Tsplits=_SPLITS,
)
def RAGGEDRANGE(dtype: Any, *bounds: Array) -> list[Array]:
    ensure(all(each.ndim <= 1 for each in bounds), "starts, limits and deltas must be scalars or vectors.")
    counts = {each.size for each in bounds if each.ndim}
    ensure(len(counts) <= 1, f"starts, limits and deltas have different lengths: {', '.join(str(each.size) for each in bounds)}.")
    starts, limits, deltas = np.broadcast_arrays(*(each.reshape(-1) if counts else each.reshape(1) for each in bounds))
    ensure(bool((deltas != 0).all()), "a step (delta) is 0.")
    whole = starts.dtype.kind in "iu"
    with np.errstate(all="ignore"):
        if whole:
            # as Python's integers, whose differences do not overflow
            sizes = [max(0, -((a - b) // d)) for a, b, d in paced(zip(listed(starts), listed(limits), listed(deltas)))]
        else:
            spans = np.ceil(np.abs((limits - starts) / deltas))
            away = ((deltas > 0) & (limits < starts)) | ((deltas < 0) & (limits > starts))
            ensure(bool(np.isfinite(spans).all()), "a range has no size.")
            sizes = [int(each) for each in paced(listed(np.where(away, 0, spans)))]
    total = sum(sizes)
    ensure(total <= np.iinfo(dtype).max, f"the ranges have {total} numbers together, more than their splits can count.")
    reserve((total,), 32)
    splits = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    steps = np.arange(total) - np.repeat(splits[:-1], sizes)
    with np.errstate(all="ignore"):
        return [splits, np.repeat(starts, sizes) + steps.astype(starts.dtype) * np.repeat(deltas, sizes)]


class _Ranks(NamedTuple):
    given: int
    made: int


def _ranks(attributes: Attributes) -> _Ranks:
    return _Ranks(
        attributes.integer("PARAMS_RAGGED_RANK", least=1, most=255), attributes.integer("OUTPUT_RAGGED_RANK", least=0, most=255)
    )


@computed(
    "RaggedGather",
    "params_nested_splits: PARAMS_RAGGED_RANK*Tsplits[1], params_dense_values: Tvalues, indices: Tindices "
    "-> output_nested_splits: OUTPUT_RAGGED_RANK*Tsplits, output_dense_values: Tvalues",
    _ranks,
    Tindices=(TensorType.INT64, TensorType.INT32),
    Tsplits=_SPLITS,
)
def RAGGEDGATHER(ranks: _Ranks, *operands: Array) -> Any:
    splits, values, indices = operands[: ranks.given], operands[-2], operands[-1]
    ensure(values.ndim >= 1, "the values must have at least one dimension.")
    ensure(
        ranks.made == ranks.given + indices.ndim - 1,
        f"OUTPUT_RAGGED_RANK is {ranks.made}; {ranks.given} levels and indices of {indices.ndim} axes give "
        f"{ranks.given + indices.ndim - 1}.",
    )
    ensure_splits(splits, len(values))
    found = []
    outer = 1
    for size in indices.shape[:-1]:
        outer *= size
        found.append(outer)
    # the levels that the indices' own axes make, all rows of one length
    reserve((sum(found),), 16)
    levels = [np.arange(count + 1) * size for count, size in zip(found, indices.shape[1:])]
    picks = checked(indices.reshape(-1), splits[0].size - 1)
    for level in splits:
        lengths = np.diff(level)[picks]
        levels.append(np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))))
        picks = rows_at(level[picks], lengths)
    if not indices.ndim:
        levels = levels[1:]  # a single row has no splits between rows
    reserve((len(picks), *values.shape[1:]), values.itemsize)
    return [*levels, values[picks]] if levels else values[picks]


def ensure_splits(levels: Sequence[Array], count: int) -> None:
    """Raise an error unless splits ascend from 0 to the row count of the next level, or to `count` at the last level.

    Raises:
        EnsureError: the splits do not.
    """
    below = [level.size - 1 for level in levels[1:]] + [count]
    for number, (level, rows) in enumerate(zip(levels, below)):
        ensure(
            level.size > 0 and level[0] == 0 and level[-1] == rows and bool((level[1:] >= level[:-1]).all()),
            f"the row splits of level {number} do not ascend from 0 to {rows}, the number of rows or values below.",
        )


def rows_at(starts: Array, lengths: Array) -> NDArray[np.int64]:
    """Return start, start + 1, ... for each of many rows of the given lengths, concatenated."""
    total = int(lengths.sum(dtype=np.int64))
    reserve((total,), 32)
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.arange(total) + np.repeat(starts.astype(np.int64) - (ends - lengths), lengths)


def row_numbers_of(splits: Array) -> NDArray[np.int64]:
    """Return the row number of each value, from row splits."""
    return np.repeat(np.arange(splits.size - 1), np.diff(splits))
