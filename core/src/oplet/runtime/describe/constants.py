"""Values of small constants, for those who describe a model without opening an interpreter."""

from __future__ import annotations

import math

from oplet.errors import ModelError
from oplet.model.model import Model
from oplet.model.save.sizes import PACKED_BITS
from oplet.ops.tensor import Array, numpy_dtype
from oplet.runtime.loading import read_strings, unpack
from oplet.schema import tables
from oplet.schema.enums import TensorType

__all__ = ["small_constant"]

#: Bytes that a string of a small constant may have.
_LONGEST_STRING = 1000


def small_constant(model: Model, tensor: tables.Tensor, most: int) -> Array | None:
    """Return the values of a constant in its shape; None if the tensor is no constant, has more than `most` elements, is stored sparse, or
    its bytes are not those of its type and shape.

    Args:
        model: the model.
        tensor: the tensor.
        most: the number of elements up to which a constant is small.

    Raises:
        ModelError: an external file that holds it cannot be read.
    """
    shape = () if tensor.shape is None else tuple(map(int, tensor.shape))
    count = math.prod(shape)
    raw = model.tensor_bytes(tensor)
    if raw is None or not 0 <= count <= most or tensor.sparsity is not None:
        return None
    try:
        if tensor.type is TensorType.STRING:
            values = read_strings(raw, "") if raw.size <= most * _LONGEST_STRING else None
        elif tensor.type in PACKED_BITS:
            values = unpack(raw, tensor.type, count)
        else:
            dtype = numpy_dtype(tensor.type)
            values = raw.view(dtype) if not dtype.hasobject and raw.size == count * dtype.itemsize else None
    except (ModelError, ValueError, ImportError):  # describing a damaged constant is no reason to describe nothing
        return None
    return values.reshape(shape) if values is not None and values.size == count else None
