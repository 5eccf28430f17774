"""STABLEHLO_SORT: tensors sorted along an axis, by the order of one of them.

The comparator may be one comparison of two values of one of the tensors. The sort is always stable; a NaN comes last.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, ensure
from oplet.schema.stablehlo_options import StablehloSortOptions
from oplet_builtin_ops.control.regions import comparator
from oplet_builtin_ops.elementwise.stablehlo_elementwise import ensure_same_shape
from oplet_builtin_ops.shaping.shapes import Array, Thunk, ensure_operands, ensure_same_type, resolve_axis
from oplet_builtin_ops.stablehlo import COMPLEX, VALUES, ensure_values


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
    key, ascends = comparator(context, options.comparator_subgraph_index, count)
    ensure(node.inputs[key].type not in COMPLEX, f"complex values have no order: {node.inputs[key]}.")
    node.prepared = axis, key, ascends


def _order(values: Array, axis: int, ascends: bool) -> Array:
    """Where the values come from that are sorted along an axis; equal ones keep their order."""
    if ascends:
        return np.argsort(values, axis, kind="stable")
    backwards = np.argsort(np.flip(values, axis), axis, kind="stable")
    return np.flip(values.shape[axis] - 1 - backwards, axis)


def bind(context: Context, node: Node) -> Thunk:
    axis, key, ascends = node.prepared
    sources, outputs = ([tensor.data for tensor in tensors] for tensors in (node.inputs, node.outputs))

    def run() -> None:
        order = _order(sources[key], axis, ascends)
        for source, output in zip(sources, outputs):
            output[...] = np.take_along_axis(source, order, axis)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
