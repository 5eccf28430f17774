"""The rules that a tensor's table keeps by itself: type, shape, buffer, quantization, stored strings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import ModelError
from oplet.model.model import Model
from oplet.model.sizes import ELEMENT_BITS, LARGEST, bytes_needed
from oplet.model.verify_sparsity import verify_sparsity
from oplet.schema import tables
from oplet.schema.enums import TensorType
from oplet.schema.naming import shown

__all__ = ["MAX_RANK", "TensorRules", "verify_strings"]

#: Dimensions that a numpy array can have.
MAX_RANK: int = getattr(np, "MAXDIMS", 64)

#: Bits of a tensor about whose size there is no question.
_CERTAIN = 1 << 60
_FLOATS = (TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.FLOAT32, TensorType.FLOAT64)
_ZERO_POINTS = {
    TensorType.INT8: (-128, 127),
    TensorType.UINT8: (0, 255),
    TensorType.INT16: (-(2**15), 2**15 - 1),
    TensorType.UINT16: (0, 2**16 - 1),
}
_ANY_ZERO_POINT = (-(2**31), 2**31 - 1)


class TensorRules:
    """Checks the tensors of a model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._buffers = model.root.buffers or []
        self._count = len(self._buffers)
        self._strings: set[int] = set()  # addresses of the buffers of strings that were looked at

    def verify(self, tensors: Sequence[tables.Tensor], where: str) -> list[int]:
        """Check the tensors of a subgraph.

        Args:
            where: what messages call the subgraph.

        Returns:
            The numbers of those that have a value in the file.

        Raises:
            ModelError: a rule is broken.
        """
        constants: list[int] = []
        others: list[int] = []
        quantized: list[tables.Tensor] = []
        buffers = self._buffers
        for index, tensor in enumerate(tensors):
            if not self.is_plain(tensor):
                others.append(index)
                continue
            if tensor.quantization is not None and tensor.quantization.scale is not None:
                quantized.append(tensor)
            data = buffers[tensor.buffer].data
            if data is not None and len(data):
                constants.append(index)
        if quantized and not _are_in_range(quantized):
            others = list(range(len(tensors)))  # in order: the first one that breaks a rule is the one to name
        for index in others:
            self._verify(tensors[index], index, tensors, where)
            if self._model.tensor_bytes(tensors[index]) is not None:
                constants.append(index)
        return constants

    def _verify(self, tensor: tables.Tensor, index: int, tensors: Sequence[tables.Tensor], where: str) -> None:
        what = f"Tensor {index} ('{shown(tensor.name)}') of {where}"
        if not isinstance(tensor.type, TensorType):
            raise ModelError(
                f"Unsupported data type {tensor.type} in tensor. {what} has a type that this schema does not know; "
                f"types go from 0 to {int(max(TensorType))} ({max(TensorType).name})."
            )
        shape = _shape(tensor, what)
        model, size = self._model, self._count
        if tensor.buffer >= size:
            raise ModelError(f"Tensor specifies out of range buffer {tensor.buffer} (only {size} buffers). {what} does.")
        data = None if tensor.external_buffer else model.buffer(tensor.buffer)
        if tensor.is_variable and (tensor.external_buffer or data is not None):
            raise ModelError(f"{what} is a variable tensor with buffer or external buffer. It's not supported now.")
        if tensor.sparsity is not None:
            stored = model.tensor_bytes(tensor)
            verify_sparsity(tensor.sparsity, shape, tensor.type, 0 if stored is None else stored.size, what)
        elif data is not None:
            needed = bytes_needed(shape, tensor.type)
            if needed is not None and data.size < needed:
                raise ModelError(
                    f"{what} requires {needed} bytes for the shape {shape} of {tensor.type.name}, but its buffer {tensor.buffer} "
                    f"has {data.size}."
                )
            if tensor.type is TensorType.STRING and (address := data.ctypes.data) not in self._strings:
                self._strings.add(address)
                verify_strings(data, what)
        if tensor.quantization is not None:
            _verify_quantization(tensor.quantization, shape, tensor.type, what)
            _verify_details(tensor.quantization.details, shape, tensors, what)

    def is_plain(self, tensor: tables.Tensor) -> bool:
        """Whether a tensor keeps all rules for reasons that are quickly seen, as most do, but for the range of what quantizes it."""
        if (
            type(tensor.type) is not TensorType
            or tensor.shape is None
            or tensor.buffer >= self._count
            or tensor.external_buffer
            or tensor.is_variable
            or tensor.sparsity is not None
        ):
            return False
        shape = tensor.shape.tolist()
        bits = ELEMENT_BITS.get(tensor.type)
        if bits is None or len(shape) > MAX_RANK or (shape and min(shape) <= 0):
            return False
        bits *= math.prod(shape)
        if bits > _CERTAIN or (tensor.quantization is not None and not _is_plain_quantization(tensor.quantization, shape)):
            return False
        buffer = self._buffers[tensor.buffer]
        if buffer.data is None:
            return buffer.offset <= 1
        size = len(buffer.data)
        return not size or size * 8 >= bits


def _is_plain_quantization(quantization: tables.QuantizationParameters, shape: list[int]) -> bool:
    scale, zero_point, dimension = quantization.scale, quantization.zero_point, quantization.quantized_dimension
    if quantization.details is not None:
        return False
    if scale is None:
        return True
    count = len(scale)
    return (
        zero_point is not None
        and len(zero_point) == count
        and (count == 1 or (0 <= dimension < len(shape) and count == shape[dimension]))
    )


def _are_in_range(tensors: Sequence[tables.Tensor]) -> bool:
    """Whether the scales and zero points of some tensors, which have both, are such as can be."""
    zero_points: dict[TensorType, list[Any]] = {}
    for tensor in tensors:
        zero_points.setdefault(tensor.type, []).append(tensor.quantization.zero_point)  # type: ignore[union-attr]
    scales = np.concatenate([tensor.quantization.scale for tensor in tensors])  # type: ignore[union-attr,misc]
    if not 0 <= scales.min() <= scales.max() < math.inf:  # nor is it so of NaNs
        return False
    for type, arrays in zero_points.items():
        values = np.concatenate(arrays)
        lowest, highest = _ZERO_POINTS.get(type, _ANY_ZERO_POINT)
        if not lowest <= values.min() <= values.max() <= highest:
            return False
    return True


def _shape(tensor: tables.Tensor, what: str) -> list[int]:
    if tensor.shape is None:
        return []
    if tensor.shape.size > MAX_RANK:
        raise ModelError(f"{what} has {tensor.shape.size} dimensions; {MAX_RANK} are possible.")
    shape: list[int] = tensor.shape.tolist()
    if shape and min(shape) < 0:
        raise ModelError(f"{what} has the shape {shape}; a dimension must not be negative.")
    # Zeros do not count: strides, and the sizes of what is left when an axis is reduced, are products of the others.
    if (bytes_needed([dim for dim in shape if dim], tensor.type) or 0) > LARGEST:
        raise ModelError(f"BytesRequired number of elements overflowed. {what} has the shape {shape}.")
    return shape


def verify_strings(raw: NDArray[np.uint8], what: str) -> None:
    """Check the offsets of a string tensor's buffer.

    Raises:
        ModelError: one leads outside the buffer, or the strings are not in order.
    """
    if raw.size < 4:
        raise ModelError(f"String {what} is invalid: its buffer has {raw.size} bytes, the count alone takes 4.")
    count = int(raw[:4].view("<i4")[0])
    if count < 0 or raw.size < 4 * (count + 2):
        raise ModelError(f"String {what} has invalid num of string set: {count}, in a buffer of {raw.size} bytes.")
    offsets = raw[4 : 4 * (count + 2)].view("<i4")
    wrong = None
    if offsets[0] != 4 * (count + 2):
        wrong = f"the first one must begin at {4 * (count + 2)}"
    elif offsets[-1] > raw.size:
        wrong = f"the last one ends at {offsets[-1]}"
    elif (falls := np.flatnonzero(offsets[1:] < offsets[:-1])).size:
        wrong = f"number {falls[0]} ends before it begins"
    if wrong is not None:
        raise ModelError(
            f"String {what} is invalid: its offsets {offsets[:4].tolist()}... do not follow each other inside {raw.size} bytes; {wrong}."
        )


def _verify_quantization(quantization: tables.QuantizationParameters, shape: list[int], type: TensorType, what: str) -> None:
    scales, zero_points = quantization.scale, quantization.zero_point
    if scales is None or not scales.size:
        return
    if zero_points is None:
        raise ModelError(
            f"Quantization parameters has non-null scale but null zero_point. {what} has invalid quantization parameters."
        )
    if zero_points.size != scales.size:
        raise ModelError(
            f"QuantizationParam has {zero_points.size} zero_point values and {scales.size} scale values. Must have same number. "
            f"{what} has invalid quantization parameters."
        )
    dimension = quantization.quantized_dimension
    if scales.size > 1:
        if not 0 <= dimension < max(len(shape), 1):
            raise ModelError(f"quantized_dimension must be in range [0, {len(shape)}). Was {dimension}. {what} has it.")
        if shape and scales.size != shape[dimension]:
            raise ModelError(
                f"num_scales must be 1 for per-layer quantization, or {shape[dimension]} for per-axis quantization, but got {scales.size}. "
                f"{what} has them."
            )
    low, high = (scales.min(), scales.max()) if scales.size > 1 else (scales[0], scales[0])
    if not 0 <= low <= high < math.inf:  # nor is it so of NaNs
        bad = ~(np.isfinite(scales) & (scales >= 0))
        raise ModelError(f"{what} has a scale of {scales[bad][0]}; scales are positive numbers.")
    lowest, highest = _ZERO_POINTS.get(type, _ANY_ZERO_POINT)
    low, high = (zero_points.min(), zero_points.max()) if zero_points.size > 1 else (zero_points[0], zero_points[0])
    if not lowest <= low <= high <= highest:
        outside = zero_points[(zero_points < lowest) | (zero_points > highest)]
        raise ModelError(f"{what} has zero point {outside[0]}, outside {lowest} to {highest}, the values of {type.name}.")


def _verify_details(
    details: object | None, shape: Sequence[int], tensors: Sequence[tables.Tensor], what: str
) -> None:  # fmt: skip
    """Scales of quantization by blocks or along several axes are tensors of their own."""
    if not isinstance(details, (tables.BlockwiseQuantization, tables.MultiAxisQuantization)):
        return
    if details.block_size < 1 and isinstance(details, tables.BlockwiseQuantization):
        raise ModelError(f"{what} is quantized by blocks of {details.block_size} values; a block has at least one.")
    for role, index in (("scales", details.scales), ("zero points", details.zero_points)):
        if not -1 <= index < len(tensors):
            raise ModelError(f"{what} has its {role} in tensor {index}; the subgraph has {len(tensors)} tensors.")
    if details.scales >= 0 and tensors[details.scales].type not in _FLOATS:
        kind = tensors[details.scales].type
        raise ModelError(
            f"{what} has its scales in tensor {details.scales}, of type {getattr(kind, 'name', kind)}; scales are floats."
        )
    for axis in _axes(details):
        if not 0 <= axis < len(shape):
            raise ModelError(f"{what} is quantized along dimension {axis}; its shape {list(shape)} has {len(shape)} dimensions.")


def _axes(details: tables.BlockwiseQuantization | tables.MultiAxisQuantization) -> list[int]:
    if isinstance(details, tables.BlockwiseQuantization) or details.quantized_dimensions is None:
        return []
    axes: list[int] = details.quantized_dimensions.tolist()
    return axes
