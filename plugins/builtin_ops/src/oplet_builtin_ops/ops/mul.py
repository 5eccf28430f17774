"""MUL: the product of two tensors that broadcast, with a fused activation.

Numerics: tflite/kernels/mul.cc, tflite/kernels/internal/reference/mul.h and integer_ops/mul.h
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.activations import activation_range
from oplet.kernels.arrays import Thunk
from oplet.kernels.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from oplet.kernels.shapes import offer_in_place
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import MulOptions
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero, rescaler
from oplet_builtin_ops.elementwise import binary_arithmetic as binary
from oplet_builtin_ops.elementwise.binary_arithmetic import ProductScaling

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLAIN = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT32,
    TensorType.COMPLEX64,
)
EIGHT_BITS = (TensorType.INT8, TensorType.UINT8)
_TYPES = (*PLAIN, *EIGHT_BITS, TensorType.INT16)


def prepare(context: Context, node: Node) -> None:
    a, b, output = binary.prepare_binary(context, node)
    activation = node.options(MulOptions).fused_activation_function
    ensure_type(a, *_TYPES)
    narrowed = a.type == TensorType.INT16 and output.type in EIGHT_BITS
    ensure(
        output.type == a.type or narrowed,
        lambda: f"Unsupported combination of input and output types in Mul: {a.type.name} to {output.type.name} ({output}).",
    )
    ensure(
        a.type != TensorType.COMPLEX64 or activation == ActivationFunctionType.NONE,
        lambda: f"Activation is not allowed for COMPLEX64 input; the options ask for {activation.name}.",
    )
    node.prepared = activation
    offer_in_place(node)
    if a.type in PLAIN or (a.type == TensorType.INT16 and not narrowed and not binary.is_quantized(output)):
        return
    ensure_quantized(output)
    bounds = activation_range(activation, output.type, output.scale, output.zero_point)
    if narrowed:
        # Both inputs are fractions of 2**15, and so is their product, rounded to 8 bits; scales are ignored.
        node.prepared = ProductScaling(0, 0, bounds)
        _add_scratch(context, node)
        return
    ensure_quantized(a, b)
    with np.errstate(all="ignore"):
        # LiteRT computes this in single precision.
        real = float(np.float32(a.scale) * np.float32(b.scale) / np.float32(output.scale))
    node.prepared = ProductScaling(*quantize_multiplier(real), bounds)
    if a.type == TensorType.INT16:
        ensure_zero_point_is_zero(a, b, output)
        _add_scratch(context, node)
    else:
        binary.add_pair_scratch(context, node)


def _add_scratch(context: Context, node: Node) -> None:
    for type in (TensorType.INT32, TensorType.INT64, TensorType.INT64):
        context.add_temporary(node, node.outputs[0].shape, type)


def bind(context: Context, node: Node) -> Thunk:
    plan = node.prepared
    if not isinstance(plan, ProductScaling):
        return binary.bind_elementwise(np.multiply, node, plan, context)
    a, b = node.inputs
    output = node.outputs[0]
    if a.type == TensorType.INT16:
        return _bind_int16(a, b, output, plan, *(temporary.data for temporary in node.temporaries))

    def rule(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
        product = ((x - a.zero_point) * (y - b.zero_point)).astype(np.int32)
        scaled = multiply_by_quantized_multiplier(product, plan.multiplier, plan.shift)
        # The sum may wrap around, as in LiteRT.
        return np.asarray(np.clip(scaled + np.int32(output.zero_point), *plan.bounds), np.int64)

    return binary.bind_pairs(node, rule)


def _bind_int16(
    a: Tensor,
    b: Tensor,
    output: Tensor,
    plan: ProductScaling,
    product: NDArray[np.int32],
    wide: NDArray[np.int64],
    scratch: NDArray[np.int64],
) -> Thunk:
    x, y, int32 = a.data, b.data, np.dtype(np.int32)
    flat, target = product.reshape(-1), output.data.reshape(-1)
    if output.type == TensorType.INT16:
        finish = rescaler(flat, wide.reshape(-1), scratch.reshape(-1), plan.multiplier, plan.shift, 0, plan.bounds, target)

        def run() -> None:
            np.multiply(x, y, product, dtype=int32)
            finish()

        return run
    low, high, zero_point = plan.bounds[0], plan.bounds[1], output.zero_point

    def run_narrowed() -> None:
        np.multiply(x, y, product, dtype=int32)
        high_half = np.minimum((flat + (1 << 14)) >> 15, 32767)
        divided = (high_half + 128 - (high_half < 0)) >> 8
        target[...] = np.clip(divided + zero_point, low, high)

    return run_narrowed


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
