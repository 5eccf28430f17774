"""GATHER: slices along an axis, selected by indices; the first `batch_dims` axes are common to input and indices.

Numerics: tflite/kernels/gather.cc
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import resolve_axis
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import GatherOptions
from oplet_builtin_ops.operands import take_type
from oplet_builtin_ops.shaping.bounds import refuse_position

#: The most batches whose slices are each taken in a call of their own, and about the slices per call if there are more.
_FEW: Final = 64
_BLOCK: Final = 1 << 15


def _axes(node: Node) -> tuple[int, int]:
    """Check and return (axis, number of batch axes)."""
    source, positions = node.inputs
    options = node.options(GatherOptions)
    axis = resolve_axis(options.axis, source.ndim)
    batch = options.batch_dims + (positions.ndim if options.batch_dims < 0 else 0)
    ensure(
        0 <= batch <= min(axis, positions.ndim),
        f"batch_dims is {options.batch_dims}; it may reach neither beyond axis {axis} nor beyond the axes of {positions}.",
    )
    ensure(
        source.shape[:batch] == positions.shape[:batch],
        f"{source} and {positions} differ in their first {batch} dimensions (batch_dims).",
    )
    return axis, batch


_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.UINT8, TensorType.INT4, TensorType.INT8,
    TensorType.INT16, TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.STRING,
)  # fmt: skip


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, positions = node.inputs
    ensure_type(source, *_TYPES)
    take_type(node.outputs[0], source)
    ensure_type(positions, TensorType.INT16, TensorType.INT32, TensorType.INT64)
    axis, batch = _axes(node)
    shape: Shape = source.shape[:axis] + positions.shape[batch:] + source.shape[axis + 1 :]
    context.resize_tensor(node.outputs[0], shape)


def _check(positions: Array, length: int) -> None:
    # A negative index as an unsigned number is a large one, so that one comparison finds both kinds of wrong indices.
    if positions.size and positions.view(np.uint64).max() >= length:
        refuse_position(positions[(positions < 0) | (positions >= length)][0], length)


def bind(context: Context, node: Node) -> Thunk:
    axis, batch = _axes(node)
    source, positions, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    length = source.shape[axis]
    batches, before, after = prod(source.shape[:batch]), prod(source.shape[batch:axis]), prod(source.shape[axis + 1 :])
    values = positions.reshape(batches, prod(positions.shape[batch:]))
    charge(8 * values.size)
    picks = values.astype(np.int64)
    rows = source.reshape(batches, before, length, after)
    targets = output.reshape(batches, before, picks.shape[1], after)
    if batches <= _FEW:
        take = _by_batch([(rows[i], picks[i], targets[i]) for i in range(batches)])
    else:
        take = _in_blocks(rows, picks, targets)
    constant = node.inputs[1].is_constant
    if constant:
        _check(picks, length)

    def run() -> None:
        if not constant:
            picks[...] = values
            _check(picks, length)
        take()

    return run


def _by_batch(pieces: list[tuple[Array, Array, Array]]) -> Thunk:
    """Return a function that gathers the slices of one batch after the other."""

    def take() -> None:
        for row, pick, target in pieces:
            # Indices were checked; with mode "clip", take writes directly into its target.
            row.take(pick, 1, target, "clip")

    return take


def _in_blocks(rows: Array, picks: Array, targets: Array) -> Thunk:
    """Return the function that runs GATHER block by block, so that its index arrays fit the scratch limit."""
    batches, before, length, after = rows.shape
    count = picks.shape[1]
    slices, found = rows.reshape(batches * before * length, after), targets.reshape(batches * before * count, after)
    step = max(1, _BLOCK // max(1, before * count))
    places = np.empty((min(step, batches), before, count), np.int64)
    firsts = np.arange(len(places) * before).reshape(len(places), before, 1) * length

    def take() -> None:
        for start in range(0, batches if found.size else 0, step):
            checkpoint()
            part = picks[start : start + step]
            at = places[: len(part)]
            np.add(firsts[: len(part)], part[:, None], at)
            at += start * before * length
            first = start * before * count
            slices.take(at.reshape(-1), 0, found[first : first + at.size], "clip")

    return take


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
