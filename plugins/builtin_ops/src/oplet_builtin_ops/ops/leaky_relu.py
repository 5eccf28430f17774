"""LEAKY_RELU: x, or alpha * x below zero. Numerics: tflite/kernels/internal/reference/leaky_relu.h"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.shapes import offer_in_place
from oplet.schema.options import LeakyReluOptions
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.activations import bind_lookup, prepare_lookup, prepare_unary, scale_ratio, scaled
from oplet_builtin_ops.elementwise.blocks import run_blocks, scratch_shape
from oplet_builtin_ops.layers.program import Call

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_PASSES = 2


def prepare(context: Context, node: Node) -> None:
    source, output = prepare_unary(context, node, *_TYPES)
    offer_in_place(node)
    if source.type == TensorType.FLOAT32:
        context.add_temporary(node, scratch_shape(context, (source.shape, output.shape), _PASSES))
        return
    ratio = scale_ratio(source, output)
    slope = scale_ratio(source, output, node.options(LeakyReluOptions).alpha)

    def rule(values: NDArray[np.int64]) -> NDArray[np.int64]:
        values = values - source.zero_point
        # A negative slope is rounded by its magnitude.
        below = scaled(values, abs(slope)) * (-1 if slope < 0 else 1)
        return np.where(values >= 0, scaled(values, ratio), below) + output.zero_point

    prepare_lookup(node, rule)


def bind(context: Context, node: Node) -> Thunk:
    if node.inputs[0].type != TensorType.FLOAT32:
        return bind_lookup(node)
    alpha = np.array(node.options(LeakyReluOptions).alpha, np.float32)
    # The result is the larger of x and alpha * x as long as alpha is at most 1. fmax and fmin, which ignore NaN, keep an infinite x
    # if alpha is 0.
    choose = np.fmax if alpha <= 1 else np.fmin

    def calls(x: Array, y: Array, scaled_down: Array) -> list[Call]:
        return [(np.multiply, (x, alpha, scaled_down)), (choose, (x, scaled_down, y))]

    return run_blocks(context, (node.inputs[0].data, node.outputs[0].data), _PASSES, calls, node.temporaries[0].data)


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES))
