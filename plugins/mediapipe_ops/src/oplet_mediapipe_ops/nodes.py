"""The check of transformation matrices."""

from __future__ import annotations

from oplet import Tensor, TensorType, ensure, ensure_type

__all__ = ["ensure_matrix"]


def ensure_matrix(matrix: Tensor) -> None:
    """Raise an error unless the tensor is a single 4 x 4 transformation matrix."""
    ensure_type(matrix, TensorType.FLOAT32)
    ensure(matrix.size == 16, f"the transformation matrix {matrix} must have 4 x 4 values.")
