"""STABLEHLO_SORT: tensors sorted together along an axis, by any comparator.

A comparator that is one comparison of two values of one tensor is recognised, and NaNs come last then; any other pure one is run.
The sort is always stable.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, charge, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.axes import resolve_axis
from oplet.kernels.operands import ensure_operands, ensure_same_shape, ensure_same_type
from oplet.schema.stablehlo_options import StablehloSortOptions
from oplet_builtin_ops.control.bodies import LANES, Body, prepare_body
from oplet_builtin_ops.control.regions import comparator, ensure_comparator
from oplet_builtin_ops.control.sorting import sorted_order
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly
from oplet_builtin_ops.stablehlo import COMPLEX, VALUES, ensure_values

#: Bytes of scratch per value for a comparison that is recognised, and for any other one.
_SCRATCH, _BY_BODY = 24, 120


def prepare(context: Context, node: Node) -> None:
    count = max(1, len(node.inputs))
    ensure_operands(node, count, count)
    ensure_values(*node.inputs)
    ensure_same_shape(*node.inputs)
    for tensor, output in zip(node.inputs, node.outputs):
        ensure_same_type(tensor, output)
        context.resize_tensor(output, tensor.shape)
    options = node.options(StablehloSortOptions)
    axis = resolve_axis(options.dimension, node.inputs[0].ndim, "dimension")
    callee = context.callee(options.comparator_subgraph_index)
    ensure_comparator(callee, count)
    known, body = comparator(callee), None
    if known is None:
        pairs = [tensor for tensor in node.inputs for _ in range(2)]
        body = prepare_body(context, callee.index, pairs, callee.outputs, min(node.inputs[0].size, LANES))
    else:
        ensure(node.inputs[known[0]].type not in COMPLEX, f"complex values have no order: {node.inputs[known[0]]}.")
    node.prepared = axis, known, body


def _order(values: Array, axis: int, ascends: bool) -> Array:
    """Return the stable argsort of values along an axis, ascending or descending."""
    if ascends:
        return np.argsort(values, axis, kind="stable")
    backwards = np.argsort(np.flip(values, axis), axis, kind="stable")
    return np.flip(values.shape[axis] - 1 - backwards, axis)


def _order_by(body: Body, tensors: list[Array], axis: int) -> Array:
    """Return the order along an axis in which a comparator body sorts the tensors' values."""
    turned = [np.moveaxis(tensor, axis, -1) for tensor in tensors]
    rows = [tensor.reshape(-1, tensor.shape[-1]) if tensor.size else tensor.reshape(0, 0) for tensor in turned]
    order = sorted_order(body, rows)
    return np.moveaxis(order.reshape(turned[0].shape), -1, axis)


def bind(context: Context, node: Node) -> Thunk:
    axis, known, body = node.prepared
    sources, outputs = ([tensor.data for tensor in tensors] for tensors in (node.inputs, node.outputs))

    def run() -> None:
        charge((_SCRATCH if known is not None else _BY_BODY) * sources[0].size)
        order = _order_by(body, sources, axis) if known is None else _order(sources[known[0]], axis, known[1])
        for source, output in zip(sources, outputs):
            output[...] = np.take_along_axis(source, order, axis)

    return quietly(run)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
