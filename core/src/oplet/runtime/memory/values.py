"""Checks of the values and shapes that callers pass for tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.errors import StateError, TensorError, failures, text_of
from oplet.ops.strings import string_array
from oplet.ops.tensor import Tensor, tensor_type
from oplet.schema.enums import TensorType
from oplet.texts import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["as_tensor_value", "check_strict"]


def as_tensor_value(tensor: Tensor, value: Any) -> NDArray[Any]:
    """Return the value as an array that fits the tensor exactly.

    Raises:
        TensorError: its type, number of dimensions or a dimension differs.
    """
    if type(value) is np.ndarray and value.shape == tensor.shape and value.dtype == tensor.dtype and not value.dtype.hasobject:
        return value  # the usual case
    try:
        array = string_array(value) if tensor.type is TensorType.STRING else np.asarray(value)
    except failures() as error:  # lists of different lengths, objects whose __array__ fails
        raise TensorError(
            f"Cannot set tensor: Got a {type(value).__name__} that is no array ({text_of(error)}) but expected type {tensor.type.name} "
            f"for input {tensor.index}, name: {shown(tensor.name)} "
        ) from error
    if tensor.type is TensorType.STRING:
        array = _strings(tensor, array)
    elif array.dtype != tensor.dtype:
        raise TensorError(
            f"Cannot set tensor: Got value of type {_type_name(array)} but expected type {tensor.type.name} "
            f"for input {tensor.index}, name: {shown(tensor.name)} "
        )
    if array.ndim != tensor.ndim:
        raise TensorError(
            f"Cannot set tensor: Dimension mismatch. Got {array.ndim} but expected {tensor.ndim} for input {tensor.index}. The tensor is {tensor}."
        )
    for dimension, (got, expected) in enumerate(zip(array.shape, tensor.shape)):
        if got != expected:
            raise TensorError(
                f"Cannot set tensor: Dimension mismatch. Got {got} but expected {expected} for dimension {dimension} "
                f"of input {tensor.index}. The tensor is {tensor}."
            )
    return array


def _strings(tensor: Tensor, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind != "O":
        raise TensorError(
            f"Cannot set tensor: Got value of type {_type_name(array)} but expected type STRING "
            f"for input {tensor.index}, name: {shown(tensor.name)} "
        )
    result = np.empty(array.shape, object)
    if set(map(type, array.ravel().tolist())) <= {bytes}:
        result[...] = array
        return result
    for position, item in enumerate(array.ravel().tolist()):
        if isinstance(item, str):
            try:
                item = item.encode()
            except UnicodeEncodeError as error:
                raise TensorError(
                    f"Cannot set tensor: element {position} of the value for {tensor} has no form in UTF-8 ({error})."
                ) from error
        elif not isinstance(item, bytes):
            raise TensorError(
                f"Cannot set tensor: element {position} of the value for {tensor} is a {type(item).__name__}, not str or bytes."
            )
        elif type(item) is not bytes:
            item = bytes(item)
        result.reshape(-1)[position] = item
    return result


def _type_name(array: NDArray[Any]) -> str:
    """LiteRT's name of an array's type."""
    try:
        if not array.dtype.isnative:
            return str(array.dtype)
        return tensor_type(array.dtype).name
    except ValueError:
        return f"NOTYPE ({array.dtype})"


def check_strict(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Check that a shape differs from the tensor's only in dimensions that are -1 in its `shape_signature`.

    Raises:
        StateError: it differs in others, or in rank.
    """
    signature = tensor.shape_signature
    if len(shape) != len(signature):
        raise StateError(
            f"Attempting to resize {tensor} to the shape {list(shape)}, of another rank. ResizeInputTensorStrict only allows "
            "mutating unknown dimensions identified by -1."
        )
    for dimension, (now, wanted, free) in enumerate(zip(tensor.shape, shape, signature)):
        if free != -1 and now != wanted:
            raise StateError(
                f"Attempting to resize dimension {dimension} of tensor {tensor.index} with value {now} to {wanted}. "
                "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
            )
