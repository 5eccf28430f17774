"""The six comparisons: of plain numbers, strings, and quantized values, which are rescaled first.

Numerics: tflite/kernels/comparisons.cc, internal/reference/comparisons.h
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.fixed_point import quantize_multiplier, saturating_rounding_doubling_high_mul, wrapping_divide_by_pot
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.arithmetic.lookup import every_value, lookup
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.elementwise.binary_arithmetic import add_pair_scratch, bind_elementwise, bind_pairs, is_quantized
from oplet_builtin_ops.elementwise.pairwise import prepare_pairwise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

__all__ = ["comparison_registration", "scaled_values"]

_EIGHT_BITS = (TensorType.INT8, TensorType.UINT8)
#: Values are multiplied by 2**8 before they are scaled, so that small differences are kept.
_LEFT_SHIFT = 8
#: The types that have an order; of 8 and 16 bits where a tensor has no scale.
_NUMBERS = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.FLOAT64, TensorType.INT32, TensorType.INT64,
    TensorType.INT16, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64,
)  # fmt: skip
_DIFFERENCE = "compares 8-bit values of scale 1, on which LiteRT aborts, 8-bit values without scales, and all unsigned integers"


def _scaled(values: Int64s, tensor: Tensor) -> Int64s:
    """Compute (value - zero_point) * scale * 2**8, rounded as in LiteRT."""
    steps = (values - tensor.zero_point) << _LEFT_SHIFT
    if tensor.scale == 1:
        # LiteRT aborts the process here.
        return steps
    multiplier, shift = quantize_multiplier(tensor.scale)
    high = saturating_rounding_doubling_high_mul(steps.astype(np.int32), multiplier)
    # LiteRT's kernel only supports scales below 1. Larger ones make it shift by a negative amount, which leaves little more than
    # the sign.
    return wrapping_divide_by_pot(high, -shift).astype(np.int64)


def scaled_values(tensor: Tensor) -> Int64s:
    """Return the rescaled number that each 8-bit or 16-bit value of the tensor is compared as, indexed by bit pattern."""
    return _scaled(every_value(tensor.type), tensor)


def comparison_registration(
    ufunc: np.ufunc, *plain: TensorType, scaled_int16: bool = False, differences: str = ""
) -> Registration:
    """Build the registration of a comparison, whose output is BOOL.

    Args:
        ufunc: the comparison.
        plain: further types that are compared as stored, besides those that all comparisons support.
        scaled_int16: whether quantized int16 values are rescaled; otherwise they are compared as stored.
        differences: what differs from LiteRT besides what differs in all comparisons, for the documentation.
    """
    scaled = (*_EIGHT_BITS, TensorType.INT16) if scaled_int16 else _EIGHT_BITS
    types = (*_NUMBERS, *_EIGHT_BITS, *plain)

    def prepare(context: Context, node: Node) -> None:
        a, b, _ = prepare_pairwise(context, node, *types, result=TensorType.BOOL)
        node.prepared = a.type in scaled and (is_quantized(a) or is_quantized(b))
        if node.prepared:
            ensure_quantized(a, b)
            for tensor in (a, b):
                if not tensor.scale > 0:
                    ensure(False, f"{tensor} has scale 0, by which nothing can be compared.")
            node.prepared = not node.cached(("order", a.type), (), lambda: _keeps_order(a, b))
        if node.prepared and a.type == TensorType.INT16:
            context.add_temporary(node, a.shape, TensorType.INT32)
            context.add_temporary(node, b.shape, TensorType.INT32)
        elif node.prepared:
            add_pair_scratch(context, node)

    def bind(context: Context, node: Node) -> Thunk:
        if not node.prepared:
            return bind_elementwise(ufunc, node, ActivationFunctionType.NONE)
        a, b = node.inputs
        if a.type == TensorType.INT16:
            return _bind_int16(ufunc, node)

        def rule(x: Int64s, y: Int64s) -> Int64s:
            result: Int64s = ufunc(_scaled(x, a), _scaled(y, b)).astype(np.int64)
            return result

        return bind_pairs(node, rule)

    return Registration(
        prepare=prepare, bind=bind, pure=True, types=types, differences="; ".join(filter(None, (_DIFFERENCE, differences)))
    )


def _keeps_order(a: Tensor, b: Tensor) -> bool:
    """Return whether stored values compare as the values that they are rescaled to.

    They do if the quantization parameters are equal and no two values are rescaled to the same one.
    """
    if (a.scale, a.zero_point) != (b.scale, b.zero_point):
        return False
    values = np.sort(every_value(a.type))
    return bool((np.diff(_scaled(values, a)) > 0).all())


def _bind_int16(ufunc: np.ufunc, node: Node) -> Thunk:
    x, y = (temporary.data for temporary in node.temporaries)
    output = node.outputs[0].data
    first, second = (_bind_scaled(node, position, scaled) for position, scaled in enumerate((x, y)))

    def run() -> None:
        first()
        second()
        ufunc(x, y, output)

    return run


def _bind_scaled(node: Node, position: int, scaled: NDArray[np.int32]) -> Thunk:
    tensor = node.inputs[position]
    table = node.cached(("scaled", position, tensor.type), (), lambda: scaled_values(tensor).astype(np.int32))
    return lookup(table, tensor.data, scaled)


EQUAL = comparison_registration(np.equal, TensorType.BOOL, TensorType.STRING, scaled_int16=True)
NOT_EQUAL = comparison_registration(
    np.not_equal,
    TensorType.BOOL,
    TensorType.STRING,
    scaled_int16=True,
    differences="compares plain INT16, where LiteRT writes nothing",
)
GREATER = comparison_registration(np.greater)
GREATER_EQUAL = comparison_registration(np.greater_equal)
LESS = comparison_registration(np.less)
LESS_EQUAL = comparison_registration(np.less_equal)
