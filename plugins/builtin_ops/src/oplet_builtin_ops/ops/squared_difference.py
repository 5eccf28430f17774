"""SQUARED_DIFFERENCE: (a - b) squared. Numerics: tflite/kernels/squared_difference.cc"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, Tensor, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier, quotient
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.binary_arithmetic import add_pair_scratch, bind_pairs
from oplet_builtin_ops.elementwise.pairwise import bind_steps, prepare_pairwise

#: Values are multiplied by 2**7 before they are scaled to a common step.
_LEFT_SHIFT = 7
_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT8)


def prepare(context: Context, node: Node) -> None:
    a, b, output = prepare_pairwise(context, node, *_TYPES)
    offer_in_place(node)
    if a.type == TensorType.INT8:
        ensure_quantized(a, b, output)
        for tensor in (a, b):
            if not tensor.scale > 0:
                ensure(False, f"{tensor} has scale 0; the inputs of this op have scales above 0.")
        first, second, ratio = _ratios(a, b, output)
        ensure(
            0 < ratio < 1 and 0 < first < 1 and 0 < second < 1,
            lambda: f"{output} has scale {output.scale:g}, too fine for the square of a difference of {a} and {b}.",
        )
        add_pair_scratch(context, node)


def _ratios(a: Tensor, b: Tensor, output: Tensor) -> tuple[float, float, float]:
    with np.errstate(over="ignore"):
        # LiteRT computes both in single precision.
        step = float(2 * np.float32(max(a.scale, b.scale)))
        steps = float(np.float32(1 << 2 * _LEFT_SHIFT) * np.float32(output.scale))
    return a.scale / step, b.scale / step, quotient(step * step, steps)


def bind(context: Context, node: Node) -> Thunk:
    if node.inputs[0].type != TensorType.INT8:
        return bind_steps(node, _plain)
    a, b = node.inputs
    output = node.outputs[0]
    first, second, result = (quantize_multiplier(ratio) for ratio in _ratios(a, b, output))

    def rule(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
        x, y = (x - a.zero_point) << _LEFT_SHIFT, (y - b.zero_point) << _LEFT_SHIFT
        difference = multiply_by_quantized_multiplier(x, *first) - multiply_by_quantized_multiplier(y, *second)
        square = multiply_by_quantized_multiplier(difference * difference, *result).astype(np.int64)
        return np.clip(square + output.zero_point, -128, 127)

    return bind_pairs(node, rule)


def _plain(a: Array, b: Array, output: Array) -> None:
    np.subtract(a, b, output)
    np.multiply(output, output, output)


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES))
