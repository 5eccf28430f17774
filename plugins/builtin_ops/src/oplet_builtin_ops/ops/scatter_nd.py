"""SCATTER_ND: updates added to zeros at given indices. Numerics: tflite/kernels/scatter_nd.cc"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_builtin_ops.shaping.positions import row_finder
from oplet_builtin_ops.shaping.segments import combined, grouped

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.BOOL, TensorType.INT8, TensorType.INT32, TensorType.INT64)

#: The most updates of one index that are added one after the other; if there are more of them, the rest is sorted.
_ROUNDS: Final = 8
#: The most updates that are added by a call for each.
_FEW: Final = 16


def _shapes(node: Node) -> list[Shape]:
    indices, updates, wanted = node.inputs
    ensure(indices.ndim >= 1 and updates.ndim >= 1, lambda: f"{indices} and {updates} must both have at least one dimension.")
    ensure(wanted.ndim == 1, lambda: f"{wanted} must be a vector, the output's shape.")
    shape = tuple(read_ints(wanted))
    outer, depth = indices.shape[:-1], indices.shape[-1]
    ensure(depth <= len(shape), f"{indices} holds positions of {depth} axes, the shape {list(shape)} has {len(shape)}.")
    ensure(
        updates.shape == outer + shape[depth:],
        f"{updates} must have shape {list(outer + shape[depth:])}, a slice of {list(shape)} for each position in {indices}.",
    )
    return [shape]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    indices, updates, shape = node.inputs
    ensure_type(updates, *_TYPES)
    ensure_type(indices, TensorType.INT32)
    ensure_type(shape, TensorType.INT32)
    context.set_type(node.outputs[0], updates.type)
    defer_or_resize(context, node, [shape], _shapes)


def _bind(node: Node) -> Thunk:
    indices, updates, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    depth = indices.shape[-1]
    slice_size, count = prod(output.shape[depth:]), prod(indices.shape[:-1])
    target = output.reshape(prod(output.shape[:depth]), slice_size)
    slices, places = updates.reshape(count, slice_size), row_finder(node.inputs[0], depth, output.shape)
    zero = np.zeros((), output.dtype)
    if slice_size == 1:
        flat, values = target.reshape(-1), slices.reshape(-1)

        def run_values() -> None:
            rows = places()
            flat.fill(zero)
            np.add.at(flat, rows, values)

        return run_values
    if count <= _FEW:

        def run_few() -> None:
            rows = places().tolist()
            target.fill(zero)
            for row, update in zip(rows, slices):
                here = target[row]
                np.add(here, update, here)

        return run_few
    charge(np.intp().itemsize * (len(target) + count))
    owner, numbers = np.zeros(len(target), np.intp), np.arange(count)

    # Scratch while it runs: rows, owners and indices of the slices, and the slices with the rows that they are added to.
    scratch = 4 * np.intp().itemsize * count + 2 * slices.nbytes

    def run() -> None:
        charge(scratch)
        rows = places()
        target.fill(zero)
        _add(target, rows, slices, owner, numbers)

    return run


def _add(target: Array, rows: Array, slices: Array, owner: Array, left: Array) -> None:
    """Add slices to rows of `target` in order: first each row's first slice in one numpy call, then the second ones, and so on.

    Args:
        target: the output.
        rows: the row of each slice.
        slices: the slices.
        owner: scratch, one integer for each row of the target.
        left: the numbers of the slices that are added, ascending.
    """
    for _ in range(_ROUNDS):
        here = rows[left]
        owner[here[::-1]] = left[::-1]
        first = owner.take(here) == left
        if first.all():
            target[here] += slices[left]
            return
        target[here[first]] += slices[left[first]]
        left = left[~first]
    groups = grouped(rows[left])
    target[groups.ids] += combined(np.add, slices[left], groups)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[2:])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
