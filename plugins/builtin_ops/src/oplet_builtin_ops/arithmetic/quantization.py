"""Checks of tensors' scales and zero points, and per-channel parameters that broadcast against the values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Quantization, Tensor, TensorType, ensure
from oplet.kernels.arrays import Shape
from oplet.kernels.fixed_point import ensure_scale, quantized_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["channel_parameters", "ensure_quantized", "ensure_same_quantization", "wraps_large_values"]


def ensure_quantized(*tensors: Tensor) -> None:
    """Check that each tensor has a finite positive scale, and a zero point that its type can hold.

    Raises:
        EnsureError: a tensor has no such scale or zero point.
    """
    for tensor in tensors:
        ensure_scale(tensor)
        low, high = quantized_range(tensor.type)
        if not low <= tensor.zero_point <= high:
            ensure(False, f"{tensor} has zero point {tensor.zero_point}, outside {low} to {high}.")


def ensure_same_quantization(a: Tensor, b: Tensor) -> None:
    """Check that both tensors have the same scale and zero point, compared exactly as in LiteRT.

    Raises:
        EnsureError: a scale or zero point differs.
    """
    ensure(
        a.scale == b.scale and a.zero_point == b.zero_point,
        lambda: (
            f"{a} has scale {a.scale:g} and zero point {a.zero_point}, {b} has {b.scale:g} and {b.zero_point}; "
            "this op does not rescale, so they must be equal."
        ),
    )


def channel_parameters(tensor: Tensor, shape: Shape) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return scales and zero points as arrays that broadcast against values of `shape`; 0-d if there is a single scale.

    Raises:
        EnsureError: there are no scales, they are not usable, or there is not one for each slice.
    """
    quantization = tensor.quantization or Quantization(np.zeros(0, np.float32), np.zeros(0, np.int64))
    scales = np.asarray(quantization.scales, np.float32)
    zero_points = np.asarray(quantization.zero_points, np.int64)
    ensure(scales.size, lambda: f"{tensor} needs a scale and has no quantization parameters.")
    ensure(
        not quantization.block_size, f"{tensor} is quantized by blocks of {quantization.block_size}, which this op does not read."
    )
    unusable: NDArray[Any] = scales[~(np.isfinite(scales) & (scales >= 0))]
    ensure(not unusable.size, lambda: f"{tensor} has scale {unusable[:1]}; a scale must be finite and not negative.")
    if scales.size == 1:
        return scales.reshape(()), zero_points[:1].reshape(()) if zero_points.size else np.zeros((), np.int64)
    axis = quantization.quantized_dimension
    ensure(0 <= axis < len(shape), lambda: f"{tensor} is quantized along dimension {axis}, which it does not have.")
    ensure(
        scales.size == shape[axis],
        f"{tensor} has {scales.size} scales along dimension {axis}, which is {shape[axis]} long; there must be one for each slice.",
    )
    if zero_points.size != scales.size:
        # LiteRT uses the first zero point for all slices.
        zero_points = np.full(scales.size, zero_points[0] if zero_points.size else 0, np.int64)
    across = [1] * len(shape)
    across[axis] = scales.size
    return scales.reshape(across), zero_points.reshape(across)


def wraps_large_values(type: TensorType, scales: NDArray[np.float32]) -> bool:
    """Return whether a float beyond int32 is quantized to the lowest int32 (before clamping to the type), as C++ casts do.

    LiteRT's own kernels do that; XNNPACK, which computes 8-bit outputs unless a scale is subnormal, clamps.
    """
    return type == TensorType.INT16 or bool((scales < np.finfo(np.float32).smallest_normal).any())
