"""Shared parts of StableHLO operators: types, attributes, and output shapes that only the model declares.

Semantics: https://github.com/openxla/stablehlo/blob/main/docs/spec.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oplet import Tensor, TensorType, ensure
from oplet.kernels.arrays import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "COMPLEX",
    "FLOATS",
    "HALVES",
    "INTEGERS",
    "SIGNED",
    "UNSIGNED",
    "VALUES",
    "attribute",
    "declared_shape",
    "ensure_axes",
    "ensure_not_quantized",
    "ensure_values",
]

FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.FLOAT64)
HALVES = (TensorType.FLOAT16, TensorType.BFLOAT16)
COMPLEX = (TensorType.COMPLEX64, TensorType.COMPLEX128)
SIGNED = (TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)
UNSIGNED = (TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64)
INTEGERS = SIGNED + UNSIGNED
#: All types whose values have a fixed size.
VALUES = (*FLOATS, *COMPLEX, *INTEGERS, TensorType.BOOL)


def attribute(vector: NDArray[Any] | None) -> list[int]:
    """Return an integer vector attribute as a list; a missing one is empty."""
    return [] if vector is None else vector.tolist()


def declared_shape(output: Tensor) -> Shape:
    """Return the output's shape as the model declares it, for StableHLO operators whose options do not tell it.

    Raises:
        EnsureError: a dimension is unknown.
    """
    shape = tuple(output.shape_signature)
    ensure(all(dim >= 0 for dim in shape), f"{output} must have a static shape in the model, not {list(shape)}.")
    return shape


def ensure_values(*tensors: Tensor) -> None:
    """Check that tensors are not strings, resources or packed sub-byte types.

    Raises:
        EnsureError: a tensor has such a type.
    """
    for tensor in tensors:
        ensure(tensor.type in VALUES, f"{tensor} is of type {tensor.type.name}, which this op does not take.")


def ensure_not_quantized(*tensors: Tensor) -> None:
    """Check that tensors are not quantized, as operators without a LiteRT kernel would have to ignore the scales.

    Raises:
        EnsureError: a tensor is quantized.
    """
    for tensor in tensors:
        scaled = tensor.quantization is not None and len(tensor.quantization.scales) > 0
        ensure(not scaled, f"{tensor} is quantized, and this op computes with plain values only.")


def ensure_axes(what: str, axes: Sequence[int], rank: int) -> None:
    """Check that axes are within 0 .. rank - 1 and that none occurs twice.

    Raises:
        EnsureError: an axis is out of range or occurs twice.
    """
    ensure(
        all(0 <= axis < rank for axis in axes) and len(set(axes)) == len(axes),
        f"{what} is {list(axes)}; these must be different axes from 0 to {rank - 1}.",
    )
