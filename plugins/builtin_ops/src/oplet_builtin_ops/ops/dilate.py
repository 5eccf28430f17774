"""DILATE: spreads values apart, with a padding value in between. Numerics: tflite/kernels/dilate.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_builtin_ops.layers.program import run_calls
from oplet_builtin_ops.operands import all_types_but
from oplet_builtin_ops.shaping.interior_padding import AxisPadding, padding_calls

_TYPES = all_types_but(TensorType.STRING)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    source, dilations, value = node.inputs
    ensure(source.ndim > 0, f"{source} must have a dimension to dilate.")
    ensure(source.type in _TYPES, f"{source} is of type STRING, which cannot be dilated.")
    ensure_same_type(source, node.outputs[0])
    ensure_same_type(source, value)
    ensure_type(dilations, TensorType.INT32)
    ensure(value.size >= 1, f"the padding value {value} must hold a value.")
    defer_or_resize(context, node, [dilations], _shapes)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:2])


def _axes(node: Node) -> list[AxisPadding]:
    source, dilations = node.inputs[:2]
    ensure(
        dilations.shape == (source.ndim,),
        lambda: f"the dilations {dilations} must have shape [{source.ndim}], one for each dimension.",
    )
    factors = read_ints(dilations)
    ensure(min(factors) >= 1, f"the dilations {factors} must not be below 1.")
    return [AxisPadding(dim, interior=factor - 1) for dim, factor in zip(source.shape, factors)]


def _shapes(node: Node) -> list[Shape]:
    return [tuple(axis.padded for axis in _axes(node))]


def _bind(node: Node) -> Thunk:
    source, _, value = (tensor.data for tensor in node.inputs)
    return run_calls(padding_calls(source, _axes(node), value.reshape(-1)[:1], node.outputs[0].data))


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
