"""RaggedRange: rows of numbers from start to limit by a step.

Inputs: starts, limits and steps of one type (int32, int64, float32, float64), each a vector or one value for all rows. Outputs: the row
splits, and the values of all rows. It is TensorFlow's op, which no LiteRT has; TensorFlow Text's models need it.

Numerics: core/kernels/ragged_range_op.cc of tensorflow: values of floats are sums of steps, rounded at each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.limits import listed, paced
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet_text_ops.nodes import give

_TYPES = (TensorType.INT32, TensorType.INT64, TensorType.FLOAT32, TensorType.FLOAT64)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3, 2)
    splits, values = node.outputs
    ensure_type(node.inputs[0], *_TYPES)
    for tensor in (*node.inputs[1:], values):
        ensure_same_type(node.inputs[0], tensor)
    ensure_type(splits, TensorType.INT32, TensorType.INT64)
    for tensor in node.inputs:
        ensure(tensor.ndim <= 1, f"{tensor} must be a vector or a scalar.")
    rows = {tensor.size for tensor in node.inputs if tensor.ndim == 1}
    ensure(len(rows) <= 1, lambda: f"starts, limits and steps have {sorted(rows)} values; all vectors must have as many.")
    for output in node.outputs:
        context.set_dynamic(output)


def invoke(context: Context, node: Node) -> None:
    starts, limits, steps = np.broadcast_arrays(*(np.atleast_1d(tensor.data) for tensor in node.inputs))
    ensure(bool((steps != 0).all()), "a step is 0; rows with it would never end.")
    counts = _counts(starts, limits, steps)
    total = int(counts.astype(object).sum()) if counts.size else 0
    splits = node.outputs[0]
    most = int(np.iinfo(splits.dtype).max)
    ensure(
        total <= most, lambda: f"its rows have {total} values, and its row splits are {splits.type.name}, which ends at {most}."
    )
    charge(3 * 8 * total)
    counts = counts.astype(np.int64)
    ends = np.cumsum(counts)
    if starts.dtype.kind == "f":
        values = np.empty(total, starts.dtype)
        for start, step, begin, end in paced(zip(starts, steps, listed(ends - counts), listed(ends)), 64):
            row = values[begin:end]
            row[:1], row[1:] = start, step
            np.add.accumulate(row, out=row)
    else:
        within = np.arange(total) - np.repeat(ends - counts, counts)
        first, step = (np.repeat(each, counts) for each in (starts, steps))
        values = (first + step * within.astype(starts.dtype)).astype(starts.dtype)
    give(context, splits, np.concatenate(([0], ends)))
    give(context, node.outputs[1], values)


def _counts(starts: NDArray[Any], limits: NDArray[Any], steps: NDArray[Any]) -> NDArray[Any]:
    """Return the number of values of each row."""
    none = ((steps > 0) & (limits < starts)) | ((steps < 0) & (limits > starts))
    if starts.dtype.kind == "f":
        ensure(
            all(bool(np.isfinite(each).all()) for each in (starts, limits, steps)),
            "a start, limit or step is infinite or no number; rows with it have no end.",
        )
        with np.errstate(over="ignore"):
            counts = np.ceil(np.abs((limits - starts) / steps))
        ensure(bool((counts < 2.0**62).all()), "a row has more than 2**62 values; use larger steps.")
        return np.where(none, 0, counts).astype(np.int64)
    # Differences of int64 need 65 bits; their amount fits into 64 without a sign.
    wide = [each.astype(np.int64).astype(np.uint64) for each in (starts, limits, steps)]
    way = np.where(limits >= starts, wide[1] - wide[0], wide[0] - wide[1])
    step = np.where(steps > 0, wide[2], np.uint64(0) - wide[2])
    counts = way // step + (way % step > 0)
    return np.where(none, np.uint64(0), counts).astype(np.uint64)


REGISTRATION = Registration(prepare=prepare, invoke=invoke, pure=True, types=_TYPES)
