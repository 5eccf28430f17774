"""Fused activations of float kernels, clamps and others. Numerics: tflite/kernels/kernel_util.cc"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.kernels.activations import CLAMPS, float_activation_range
from oplet.kernels.fixed_point import clip
from oplet.schema.enums import ActivationFunctionType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["apply_activation"]


def apply_activation(array: NDArray[Any], activation: ActivationFunctionType) -> None:
    """Apply a fused activation to an array of floats, in place."""
    if activation == ActivationFunctionType.TANH:
        np.tanh(array, array)
    elif activation == ActivationFunctionType.SIGN_BIT:
        array[...] = np.signbit(array)
    elif activation in CLAMPS and activation != ActivationFunctionType.NONE:
        low, high = float_activation_range(activation)
        clip(array, array.dtype.type(low), array.dtype.type(high), array)
