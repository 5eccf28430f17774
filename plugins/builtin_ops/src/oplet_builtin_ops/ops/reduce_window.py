"""REDUCE_WINDOW: windows slide over a tensor, and each is reduced to one value.

Numerics: tflite/kernels/stablehlo_reduce_window.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands
from oplet.schema.enums import ReduceWindowFunction
from oplet.schema.stablehlo_options import ReduceWindowOptions
from oplet_builtin_ops.layers.window_reduction import (
    REDUCIBLE_TYPES,
    add_fold_scratch,
    ensure_reducible,
    fold_windows,
    window_axes,
)

_FUNCTIONS = {
    ReduceWindowFunction.ADD: np.add,
    ReduceWindowFunction.MUL: np.multiply,
    ReduceWindowFunction.MINIMUM: np.minimum,
    ReduceWindowFunction.MAXIMUM: np.maximum,
    ReduceWindowFunction.ALL: np.logical_and,
    ReduceWindowFunction.ANY: np.logical_or,
}


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 5)
    source, initial, *numbers = node.inputs
    ensure_reducible(source, initial, node.outputs[0])
    for tensor in numbers:
        ensure_type(tensor, TensorType.INT64)
        ensure(tensor.is_constant, f"{tensor} must be constant: it says how the window lies.")
    function = node.options(ReduceWindowOptions).reduce_function
    ensure(function in _FUNCTIONS, f"the options name no function to reduce with, but {function.name}.")
    taps, strides, dilations = (read_ints(tensor) for tensor in numbers)
    axes = window_axes(source.shape, taps, strides, dilations)
    context.resize_tensor(node.outputs[0], [axis.out for axis in axes])
    node.prepared = _FUNCTIONS[function], axes, add_fold_scratch(context, node, axes, source.type)


def bind(context: Context, node: Node) -> Thunk:
    function, axes, scratch = node.prepared
    return fold_windows(function, node.inputs[0].data, axes, node.inputs[1].data, scratch, node.outputs[0].data)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=REDUCIBLE_TYPES,
    differences="a sum or product of booleans is a boolean here, and a NaN in a window makes its maximum and minimum NaN",
)
