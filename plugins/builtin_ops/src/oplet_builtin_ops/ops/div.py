"""DIV: the quotient of two tensors that broadcast, with a fused activation; integers are truncated.

Numerics: tflite/kernels/div.cc, internal/reference/div.h
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.activations import activation_range
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip, quantize_multiplier, saturating_rounding_doubling_high_mul, wrapping_divide_by_pot
from oplet.kernels.shapes import offer_in_place
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import DivOptions
from oplet_builtin_ops.arithmetic.fixed_point_functions import reciprocal
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.binary_arithmetic import add_pair_scratch, bind_elementwise, bind_pairs
from oplet_builtin_ops.elementwise.pairwise import bind_steps, ensure_no_zeros, prepare_pairwise

TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16)

Int64s = NDArray[np.int64]


class Scaling(NamedTuple):
    """Fixed-point rescaling of a quotient of two quantized values to the output."""

    multiplier: int
    shift: int
    zero_point: int
    bounds: tuple[int, int]

    def of(self, x: Int64s, y: Int64s) -> Int64s:
        """Return the output for zero-point-corrected values x / y; y must not be 0."""
        x, y = np.where(y < 0, -x, x), np.abs(y)
        inverse, bits_over_unit = reciprocal(y, 31)
        # x is shifted to the left as far as possible.
        headroom = 31 - np.frexp(np.where(x < 0, ~x, x).astype(np.float64))[1].astype(np.int64)
        quotient = saturating_rounding_doubling_high_mul(x << headroom, inverse)
        scaled = saturating_rounding_doubling_high_mul(quotient, self.multiplier)
        steps = wrapping_divide_by_pot(scaled, bits_over_unit + headroom - self.shift)
        return np.clip(steps.astype(np.int64) + self.zero_point, *self.bounds)


def prepare(context: Context, node: Node) -> None:
    a, b, output = prepare_pairwise(context, node, *TYPES)
    activation = node.options(DivOptions).fused_activation_function
    node.prepared = activation
    offer_in_place(node)
    if a.type == TensorType.FLOAT32:
        return
    if a.type == TensorType.INT32:
        context.add_temporary(node, output.shape, TensorType.FLOAT64)
        return
    ensure_quantized(a, b, output)
    with np.errstate(all="ignore"):
        # LiteRT computes this in single precision.
        ratio = float(np.float32(a.scale) / (np.float32(b.scale) * np.float32(output.scale)))
    bounds = activation_range(activation, output.type, output.scale, output.zero_point)
    node.prepared = Scaling(*quantize_multiplier(ratio), output.zero_point, bounds)
    if a.type != TensorType.INT16:
        add_pair_scratch(context, node)


def bind(context: Context, node: Node) -> Thunk:
    a, b = node.inputs
    plan = node.prepared
    if a.type == TensorType.FLOAT32:
        return bind_elementwise(np.divide, node, plan)
    if a.type == TensorType.INT32:
        return ensure_no_zeros(b, _bind_integers(node, plan))

    def rule(x: Int64s, y: Int64s) -> Int64s:
        divisors = y - b.zero_point
        result: Int64s = plan.of(x - a.zero_point, np.where(divisors == 0, 1, divisors))
        return result

    def steps(x: Array, y: Array, output: Array) -> None:
        output[...] = rule(x.astype(np.int64), y.astype(np.int64))

    run = bind_steps(node, steps) if a.type == TensorType.INT16 else bind_pairs(node, rule)
    return ensure_no_zeros(b, run, b.zero_point)


def _bind_integers(node: Node, activation: ActivationFunctionType) -> Thunk:
    a, b = (tensor.data for tensor in node.inputs)
    output, quotient = node.outputs[0].data, node.temporaries[0].data
    double = np.dtype(np.float64)
    lowest, highest = (np.array(bound, np.float64) for bound in activation_range(activation, TensorType.INT32, 1.0, 0))

    def run() -> None:
        # Exact: a quotient of int32 values that is no integer differs from one by more than double precision's rounding.
        np.divide(a, b, quotient, dtype=double)
        np.trunc(quotient, quotient)
        clip(quotient, lowest, highest, quotient)
        np.copyto(output, quotient, "unsafe")

    return run


REGISTRATION = takes_halves(
    Registration(
        prepare=prepare, bind=bind, pure=True, types=TYPES, differences="refuses 8-bit and 16-bit integers that are not quantized"
    )
)
