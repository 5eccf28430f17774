"""Ops that gather or scatter slices by index: Gather(V2), GatherNd, ScatterNd and the TensorScatter family.

Indices outside are refused, as TensorFlow refuses them on CPUs, unless the attribute `bad_indices_policy` is IGNORE.

Numerics: tensorflow/core/kernels/{gather_op.cc,gather_nd_op.cc,scatter_nd_op.cc}
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import read_int, read_ints, resolve_axis
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import reserve, shaped
from oplet_flex_ops.positions import checked, row_numbers
from oplet_flex_ops.signature import INDICES, NUMBERS, REALS, Types

_SHORT = (*INDICES, TensorType.INT16)


def _gather_axes(node: Node, batch_dims: int) -> tuple[int, int]:
    """Return the gather axis and the number of batch axes, both checked."""
    params, indices = node.inputs[:2]
    axis = resolve_axis(read_int(node.inputs[2]), params.ndim) if len(node.inputs) > 2 else 0
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    ensure(
        params.ndim >= 1 and 0 <= batch <= min(axis, indices.ndim),
        f"batch_dims is {batch_dims}, beyond axis {axis} or {indices}.",
    )
    ensure(
        params.shape[:batch] == indices.shape[:batch],
        f"{params} and {indices} must have the same first {batch} axes (batch_dims).",
    )
    return axis, batch


def _gather_shapes(node: Node, batch_dims: int) -> list[Shape]:
    axis, batch = _gather_axes(node, batch_dims)
    params, indices = node.inputs[:2]
    return [params.shape[:axis] + indices.shape[batch:] + params.shape[axis + 1 :]]


def _gather(node: Node, batch_dims: int) -> Thunk:
    axis, batch = _gather_axes(node, batch_dims)
    params, indices, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    length, groups = params.shape[axis], prod(params.shape[:batch])
    outer, inner = prod(params.shape[batch:axis]), prod(params.shape[axis + 1 :])
    rows = params.reshape(groups, outer, length, inner)
    picks = indices.reshape(groups, prod(indices.shape[batch:]))
    target = output.reshape(groups, outer, picks.shape[1], inner)

    def run() -> None:
        places = checked(picks, length)
        if target.size:
            for row, place, part in paced(zip(rows, places, target), 64):
                np.take(row, place, 1, part, "clip")  # checked before; this mode writes directly into its target

    return run


GATHER = shaped(
    "Gather", "params: Tparams, indices: Tindices -> output: Tparams", _gather_shapes, lambda attributes: 0, Tindices=INDICES
)(_gather)
GATHERV2 = shaped(
    "GatherV2",
    "params: Tparams, indices: Tindices, axis: Taxis[0]! -> output: Tparams",
    _gather_shapes,
    lambda attributes: attributes.integer("batch_dims", default=0),
    Tindices=_SHORT,
    Taxis=INDICES,
)(_gather)


def _skips(attributes: Attributes) -> bool:
    """Return whether out-of-range indices are ignored rather than errors."""
    return attributes.text("bad_indices_policy", "", "DEFAULT", "ERROR", "IGNORE", default="") == "IGNORE"


def _places(indices: Array, shape: Shape, skip: bool) -> NDArray[np.int64]:
    depth = indices.shape[-1]
    return row_numbers(indices.reshape(prod(indices.shape[:-1]), depth), shape[:depth], skip=skip)


def _gather_nd_shapes(node: Node, skip: bool) -> list[Shape]:
    params, indices = node.inputs
    ensure(params.ndim >= 1 and indices.ndim >= 1, f"{params} and {indices} must have at least one dimension.")
    depth = indices.shape[-1]
    ensure(depth <= params.ndim, f"{indices} holds indices of {depth} axes, {params} has only {params.ndim}.")
    return [indices.shape[:-1] + params.shape[depth:]]


@shaped("GatherNd", "params: Tparams, indices: Tindices -> output: Tparams", _gather_nd_shapes, _skips, Tindices=_SHORT)
def GATHERND(node: Node, skip: bool) -> Thunk:
    params, indices, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    depth = indices.shape[-1]
    count, size = prod(indices.shape[:-1]), prod(params.shape[depth:])
    rows, target = params.reshape(prod(params.shape[:depth]), size), output.reshape(count, size)
    zero = b"" if params.dtype == object else 0

    def run() -> None:
        places = _places(indices, params.shape, skip)
        if not target.size:
            return
        if skip and (places < 0).any():
            target[...] = zero
            target[places >= 0] = rows[places[places >= 0]]
        else:
            np.take(rows, places, 0, target, "clip")

    return run


def _ensure_updates(shape: Shape, indices: Shape, updates: Shape) -> None:
    """Raise an error unless updates have one slice of `shape` for each index vector."""
    ensure(bool(indices) and bool(shape), "indices and the tensor to write must have at least one dimension.")
    depth = indices[-1]
    ensure(
        depth <= len(shape) and updates == indices[:-1] + shape[depth:],
        f"updates have the shape {list(updates)}; for indices of {list(indices)} into {list(shape)} they need "
        f"{[*indices[:-1], *shape[depth:]]}.",
    )


def _scatter_nd_shapes(node: Node, skip: bool) -> list[Shape]:
    sizes = tuple(read_ints(node.inputs[2]))
    ensure(len(sizes) <= 32 and min(sizes, default=0) >= 0, f"{node.inputs[2]} holds {list(sizes)}, which is no shape.")
    _ensure_updates(sizes, node.inputs[0].shape, node.inputs[1].shape)
    return [sizes]


def _tensor_scatter_shapes(node: Node, skip: bool) -> list[Shape]:
    _ensure_updates(node.inputs[0].shape, node.inputs[1].shape, node.inputs[2].shape)
    return [node.inputs[0].shape]


def _scatterer(output: Array, indices: Array, updates: Array, apply: Any, skip: bool) -> Thunk:
    """Return a function that applies updates to the output in order by the ufunc `apply`, None to overwrite."""
    depth = indices.shape[-1]
    size, count = prod(output.shape[depth:]), prod(indices.shape[:-1])
    rows = output.reshape(prod(output.shape[:depth]), size)
    given = updates.reshape(count, size)

    def run() -> None:
        places = _places(indices, output.shape, skip)
        values = given
        if skip and (places < 0).any():
            there = places >= 0
            places, values = places[there], values[there]
        if not values.size:
            return
        if apply is not None:
            reserve(values.shape, 16)
            apply.at(rows, places, values)
        else:
            rows[places] = values  # of several values for a place the last stays, as numpy documents

    return run


@shaped(
    "ScatterNd",
    "indices: Tindices, updates: T, shape: Tindices[1]! -> output: T",
    _scatter_nd_shapes,
    _skips,
    T=(*NUMBERS, TensorType.BOOL, TensorType.STRING),
    Tindices=_SHORT,
)
def SCATTERND(node: Node, skip: bool) -> Thunk:
    output = node.outputs[0].data
    scatter = _scatterer(output, node.inputs[0].data, node.inputs[1].data, np.add, skip)
    zero = b"" if output.dtype == object else 0

    def run() -> None:
        output.fill(zero)
        scatter()

    return run


def _tensor_scatter(op: str, apply: Any, types: Types, name: str = "tensor") -> Registration:
    def bind(node: Node, skip: bool) -> Thunk:
        source, output = node.inputs[0].data, node.outputs[0].data
        scatter = _scatterer(output, node.inputs[1].data, node.inputs[2].data, apply, skip)

        def run() -> None:
            output[...] = source
            scatter()

        return run

    text = f"{name}: T, indices: Tindices, updates: T -> output: T"
    indices = (*_SHORT, TensorType.UINT16) if apply is None else INDICES
    return shaped(op, text, _tensor_scatter_shapes, _skips, T=types, Tindices=indices)(bind)


TENSORSCATTERADD = _tensor_scatter("TensorScatterAdd", np.add, NUMBERS)
TENSORSCATTERSUB = _tensor_scatter("TensorScatterSub", np.subtract, NUMBERS)
TENSORSCATTERMAX = _tensor_scatter("TensorScatterMax", np.maximum, REALS)
TENSORSCATTERMIN = _tensor_scatter("TensorScatterMin", np.minimum, REALS)
TENSORSCATTERUPDATE = _tensor_scatter("TensorScatterUpdate", None, ())
SCATTERNDNONALIASINGADD = _tensor_scatter("ScatterNdNonAliasingAdd", np.add, (*NUMBERS, TensorType.BOOL), "input")
