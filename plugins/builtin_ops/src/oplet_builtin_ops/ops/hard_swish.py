"""HARD_SWISH: x * min(max(x + 3, 0), 6) / 6.

For quantized types the two factors are 16-bit fixed-point numbers, each shifted left as far as possible before it is rounded.

Numerics: tflite/kernels/internal/reference/hard_swish.h
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip, quantize_multiplier, rounding_divide_by_pot
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.activations import bind_lookup, prepare_lookup, prepare_unary
from oplet_builtin_ops.elementwise.blocks import run_blocks, scratch_shape
from oplet_builtin_ops.layers.program import Call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]


_TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8)
_PASSES = 4
_ZERO, _THREE, _SIX, _SIXTH = (np.array(value, np.float32) for value in (0, 3, 6, 1 / 6))


def prepare(context: Context, node: Node) -> None:
    source, output = prepare_unary(context, node, *_TYPES)
    offer_in_place(node)
    if source.type == TensorType.FLOAT32:
        context.add_temporary(node, scratch_shape(context, (source.shape, output.shape), _PASSES))
        return
    fine_scale = np.float32(1 / 128) * np.float32(source.scale)
    output_factor, output_exponent = _factor16(fine_scale, np.float32(output.scale))
    gate_factor, gate_exponent = _factor16(fine_scale, np.float32(3 / 32768))
    ensure(
        output_exponent <= 0,
        f"{output} has scale {output.scale:g}, below 1/128 of the input's scale {source.scale:g}; that is too fine for this op.",
    )

    def rule(values: Int64s) -> Int64s:
        fine = _wrap16((values - source.zero_point) << 7)
        product = _high_product(fine, output_factor)
        gate = _gate(fine, gate_factor, gate_exponent)
        # This product is truncated, unlike the others, which cancels their bias.
        cut = _saturate16(np.trunc(gate * product / 32768).astype(np.int64))
        return _wrap16(_shift_right(cut, -output_exponent) + output.zero_point)

    prepare_lookup(node, rule)


def _factor16(scale: np.float32, target: np.float32) -> tuple[int, int]:
    """Return the ratio of two scales as a 15-bit multiplier and a shift."""
    with np.errstate(all="ignore"):
        multiplier, exponent = quantize_multiplier(float(scale / target))
    return min((multiplier + (1 << 15)) >> 16, 0x7FFF), exponent


def _gate(fine: Int64s, factor: int, exponent: int) -> Int64s:
    """Compute relu6(x + 3) / 6 in units of 2**-15, by saturating x / 3 to [-1, 1]."""
    value = _saturate16(fine * _left_factor(exponent - 1)) if exponent > 0 else fine
    value = _high_product(value, factor)
    if exponent > 0:
        value = _saturate16(value << 1)
    elif exponent < 0:
        value = _shift_right(value, -exponent)
    return (value + (1 << 15)) >> 1


def _left_factor(amount: int) -> int:
    """Return 2**amount as int32 arithmetic has it: 2**31 wraps around to a negative number, larger shifts give 0."""
    return (1 << amount) - (1 << 32 if amount == 31 else 0) if amount < 32 else 0


def _high_product(a: Int64s, factor: int) -> Int64s:
    """Return the high 16 bits of 2 * a * factor, to nearest, ties up, saturating."""
    return np.asarray(np.minimum((a * factor + (1 << 14)) >> 15, 32767))


def _shift_right(values: Int64s, exponent: int) -> Int64s:
    if exponent < 16:
        return rounding_divide_by_pot(values, exponent)
    # LiteRT's mask of the bits that are shifted out overflows 16 bits here, so that every value is rounded away from zero.
    return np.where(values < 0, -1, 1)


def _saturate16(values: Int64s) -> Int64s:
    return np.clip(values, -32768, 32767)


def _wrap16(values: Int64s) -> Int64s:
    return values.astype(np.int16).astype(np.int64)


def bind(context: Context, node: Node) -> Thunk:
    if node.inputs[0].type != TensorType.FLOAT32:
        return bind_lookup(node)
    return _bind_float(context, node.inputs[0], node.outputs[0], node.temporaries[0].data)


def _bind_float(context: Context, source: Tensor, output: Tensor, scratch: Array) -> Thunk:
    def calls(x: Array, y: Array, gate: Array) -> list[Call]:
        return [
            (np.add, (x, _THREE, gate)),
            (clip, (gate, _ZERO, _SIX, gate)),
            (np.multiply, (gate, _SIXTH, gate)),
            (np.multiply, (gate, x, y)),
        ]

    return run_blocks(context, (source.data, output.data), _PASSES, calls, scratch)


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES))
