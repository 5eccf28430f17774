"""Quantized tensors inside a function: their real numbers, and the way back to integers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from oplet import Node, Tensor, TensorType

__all__ = ["EIGHT_BITS", "QUANTIZED", "dequantized", "is_quantized", "one_scale", "quantized", "real_bias"]

#: The types of quantized activations.
QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: Those of operators that LiteRT computes in 16 bits by tables too coarse to be met within a step.
EIGHT_BITS = QUANTIZED[:2]


def is_quantized(tensor: Tensor) -> bool:
    """Return whether a tensor has integer values with quantization scales."""
    return tensor.type in QUANTIZED and tensor.quantization is not None and len(tensor.quantization.scales) > 0


def one_scale(tensor: Tensor) -> bool:
    """Return whether a tensor is quantized by a single positive scale."""
    return is_quantized(tensor) and not tensor.per_channel and tensor.scale > 0


def dequantized(value: Any, tensor: Tensor) -> Any:
    """Dequantize a jax value by the tensor's scales and zero points; return float32."""
    found = tensor.quantization
    if found is None or not len(found.scales):
        return value.astype(jnp.float32)
    shape = [1] * tensor.ndim
    if found.per_channel:
        shape[found.quantized_dimension] = len(found.scales)
    scales, zeros = found.scales.astype(np.float32), found.zero_points.astype(np.int32)
    if not found.per_channel:
        scales, zeros = scales[:1], zeros[:1] if len(zeros) else np.zeros(1, np.int32)
    elif len(zeros) != len(scales):
        zeros = np.resize(zeros, len(scales)) if len(zeros) else np.zeros(len(scales), np.int32)
    if tensor.ndim == 0:
        scales, zeros = scales[0], zeros[0]
    else:
        scales, zeros = scales.reshape(shape), zeros.reshape(shape)
    return (value.astype(jnp.int32) - zeros).astype(jnp.float32) * scales


def quantized(value: Any, tensor: Tensor) -> Any:
    """Quantize a float jax value by the tensor's scale and zero point: to nearest, ties away from 0, NaN to the lowest integer."""
    limits = np.iinfo(tensor.dtype)
    steps = value.astype(jnp.float32) / np.float32(tensor.scale)  # of which XLA makes a product
    # Rounding after adding a half would round the largest float below a half up.
    whole = jnp.trunc(steps)
    whole = whole + jnp.where(jnp.abs(steps - whole) >= 0.5, jnp.sign(steps), np.float32(0))
    shifted = jnp.clip(whole + np.float32(tensor.zero_point), np.float32(limits.min), np.float32(limits.max))
    return jnp.where(jnp.isnan(shifted), np.float32(limits.min), shifted).astype(tensor.dtype)


def real_bias(node: Node, position: int) -> Any:
    """Return a constant integer bias, the input at `position`, as float32: its scale is input scale * weight scale."""
    bias, data, weights = node.inputs[position], node.inputs[0], node.inputs[1]
    if node.op_name == "TRANSPOSE_CONV":
        data = node.inputs[2]
    found = weights.quantization
    scales = np.ones(1) if found is None else found.scales.astype(np.float64)
    return (bias.data.astype(np.float64) * (data.scale * scales)).astype(np.float32)
