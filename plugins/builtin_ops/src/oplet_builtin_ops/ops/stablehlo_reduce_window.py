"""STABLEHLO_REDUCE_WINDOW: a tensor is dilated and padded with the initial value, then its windows are folded.

The body may be one sum, product, maximum, minimum, logical and, or logical or.
Numerics: tflite/kernels/stablehlo_reduce_window.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.schema.stablehlo_options import StablehloReduceWindowOptions
from oplet_builtin_ops.control.regions import body_function
from oplet_builtin_ops.layers.program import run_calls
from oplet_builtin_ops.layers.window_reduction import (
    REDUCIBLE_TYPES,
    add_fold_scratch,
    ensure_reducible,
    fold_windows,
    window_axes,
)
from oplet_builtin_ops.shaping.interior_padding import AxisPadding, padding_calls
from oplet_builtin_ops.shaping.shapes import Thunk, ensure_operands
from oplet_builtin_ops.stablehlo import attribute


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, initial = node.inputs
    ensure_reducible(source, initial, node.outputs[0])
    options = node.options(StablehloReduceWindowOptions)
    rank = source.ndim
    spreads, edges = attribute(options.base_dilations) or [1] * rank, attribute(options.padding) or [0] * (2 * rank)
    ensure(len(spreads) == rank and min(spreads) > 0, f"base_dilations {spreads} must be {rank} numbers above zero.")
    ensure(len(edges) == 2 * rank, f"the padding {edges} must be two numbers for each of {rank} axes.")
    paddings = [
        AxisPadding(dim, low, high, spread - 1) for dim, low, high, spread in zip(source.shape, edges[::2], edges[1::2], spreads)
    ]
    shape = tuple(padding.padded for padding in paddings)
    ensure(
        shape == source.shape or min(shape) > 0,
        f"the padding specification of stablehlo.reduce_window gives an empty tensor: {source}, padded by {edges}.",
    )
    axes = window_axes(
        shape,
        attribute(options.window_dimensions),
        attribute(options.window_strides) or [1] * rank,
        attribute(options.window_dilations) or [1] * rank,
    )
    function = body_function(context, options.body_subgraph_index)
    ensure(function is not None, "its body does nothing, and a reduction must combine two values.")
    context.resize_tensor(node.outputs[0], [axis.out for axis in axes])
    padded = None if shape == source.shape else context.add_temporary(node, shape, source.type)
    node.prepared = function, paddings, padded, axes, add_fold_scratch(context, node, axes, source.type)


def bind(context: Context, node: Node) -> Thunk:
    function, paddings, padded, axes, scratch = node.prepared
    source, initial = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data
    if padded is None:
        return fold_windows(function, source, axes, initial, scratch, output)
    pad = run_calls(padding_calls(source, paddings, initial.reshape(-1)[:1], padded.data))
    fold = fold_windows(function, padded.data, axes, initial, scratch, output)

    def run() -> None:
        pad()
        fold()

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=REDUCIBLE_TYPES,
    differences="a sum or product of booleans is a boolean here, and a NaN in a window makes its maximum and minimum NaN",
)
