"""STABLEHLO_RESHAPE: the same values in the output's shape of the model."""

from __future__ import annotations

from math import prod

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet_builtin_ops.stablehlo import VALUES, declared_shape, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_values(source)
    ensure_same_type(source, output)
    shape = declared_shape(output)
    ensure(prod(shape) == source.size, f"{source} has {source.size} values, which cannot be given the shape {list(shape)}.")
    context.resize_tensor(output, shape)
    node.in_place = [source]


def bind(context: Context, node: Node) -> Thunk:
    return copier(node.outputs[0].data.reshape(-1), node.inputs[0].data.reshape(-1))


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
