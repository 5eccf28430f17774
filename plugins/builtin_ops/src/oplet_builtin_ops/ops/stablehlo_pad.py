"""STABLEHLO_PAD: padding at the edges, which crops if it is negative, and between the values.

Numerics: tflite/kernels/stablehlo_pad.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.stablehlo_options import StablehloPadOptions
from oplet_builtin_ops.layers.program import run_calls
from oplet_builtin_ops.operands import all_types_but
from oplet_builtin_ops.shaping.interior_padding import AxisPadding, padding_calls
from oplet_builtin_ops.stablehlo import attribute

_REFUSED = (TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, value = node.inputs
    output = node.outputs[0]
    ensure(source.type not in _REFUSED, f"{source} is of type {source.type.name}, which cannot be padded.")
    ensure_same_type(source, value)
    ensure_same_type(source, output)
    ensure(value.size == 1, f"the padding value {value} must be one value, not {value.size}.")
    ensure(1 <= source.ndim <= 8, f"{source} must have 1 to 8 dimensions.")
    options = node.options(StablehloPadOptions)
    amounts = [attribute(v) for v in (options.edge_padding_low, options.edge_padding_high, options.interior_padding)]
    ensure(len({*map(len, amounts)}) == 1, f"low, high and interior padding {amounts} must be as many numbers.")
    # In LiteRT, axes without numbers are not padded, and numbers without an axis stand for nothing.
    amounts = [[*numbers, *[0] * source.ndim][: source.ndim] for numbers in amounts]
    ensure(min(amounts[2]) >= 0, f"the interior padding {amounts[2]} must not be negative.")
    axes = [AxisPadding(*numbers) for numbers in zip(source.shape, *amounts)]
    shape = [axis.padded for axis in axes]
    # In LiteRT, a tensor whose values are all cropped along one axis contributes none.
    context.resize_tensor(output, shape if min(shape) > 0 else [0] * len(shape))
    node.prepared = axes


def bind(context: Context, node: Node) -> Thunk:
    source, value = (tensor.data for tensor in node.inputs)
    return run_calls(padding_calls(source, node.prepared, value, node.outputs[0].data))


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=all_types_but(*_REFUSED))
