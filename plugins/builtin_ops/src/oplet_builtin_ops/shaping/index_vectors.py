"""Index vectors of STABLEHLO_GATHER and STABLEHLO_SCATTER: integer tensors in which one axis holds the vector's components."""

from __future__ import annotations

import numpy as np

from oplet import Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape

__all__ = ["ensure_index_vectors", "index_vectors"]


def ensure_index_vectors(indices: Tensor, axis: int, length: int) -> Shape:
    """Check that index vectors have `length` components; return the shape of the batch of vectors.

    Raises:
        EnsureError: the type is wrong, there is no such axis, or the vectors have another length.
    """
    ensure_type(indices, TensorType.INT32, TensorType.INT64)
    rank = indices.ndim
    ensure(0 <= axis <= rank, f"index_vector_dim is {axis}; {indices} has the axes 0 to {rank - 1}, and {rank} means scalars.")
    found = indices.shape[axis] if axis < rank else 1
    ensure(found == length, f"the index vectors of {indices} have length {found} and must have {length}.")
    return indices.shape[:axis] + indices.shape[axis + 1 :]


def index_vectors(indices: Array, axis: int) -> Array:
    """Return a view of the indices whose last axis holds the components of each vector."""
    return indices[..., None] if axis == indices.ndim else np.moveaxis(indices, axis, -1)
