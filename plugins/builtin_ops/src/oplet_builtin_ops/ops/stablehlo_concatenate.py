"""STABLEHLO_CONCATENATE: tensors one after the other along an axis."""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.axes import along
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.stablehlo_options import StablehloConcatenateOptions
from oplet_builtin_ops.layers.program import run_calls
from oplet_builtin_ops.stablehlo import VALUES, ensure_axes, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, max(1, len(node.inputs)))
    first, *others = node.inputs
    axis = node.options(StablehloConcatenateOptions).dimension
    ensure_values(first)
    ensure_axes("dimension", [axis], first.ndim)
    for tensor in others:
        ensure_same_type(first, tensor)
        fits = tensor.ndim == first.ndim and all(m == n for i, (m, n) in enumerate(zip(tensor.shape, first.shape)) if i != axis)
        ensure(fits, f"{tensor} and {first} must have the same shape but for dimension {axis}.")
    ensure_same_type(first, node.outputs[0])
    length = sum(tensor.shape[axis] for tensor in node.inputs)
    context.resize_tensor(node.outputs[0], (*first.shape[:axis], length, *first.shape[axis + 1 :]))


def bind(context: Context, node: Node) -> Thunk:
    axis = node.options(StablehloConcatenateOptions).dimension
    output = node.outputs[0].data
    program, start = [], 0
    for tensor in node.inputs:
        end = start + tensor.shape[axis]
        program.append((output[along(axis, slice(start, end))].__setitem__, (..., tensor.data)))
        start = end
    return run_calls(program)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
