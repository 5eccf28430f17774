"""STABLEHLO_TRANSPOSE: the axes of a tensor in another order."""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.stablehlo_options import StablehloTransposeOptions
from oplet_builtin_ops.stablehlo import VALUES, attribute, ensure_axes, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_values(source)
    ensure_same_type(source, output)
    order = attribute(node.options(StablehloTransposeOptions).permutation)
    ensure_axes("permutation", order, source.ndim)
    ensure(len(order) == source.ndim, f"the permutation {order} must name every axis of {source}.")
    node.prepared = order
    context.resize_tensor(output, [source.shape[axis] for axis in order])


def bind(context: Context, node: Node) -> Thunk:
    return copier(node.outputs[0].data, node.inputs[0].data.transpose(node.prepared))


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
