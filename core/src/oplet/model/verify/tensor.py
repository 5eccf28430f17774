"""Verification of tensors: type, shape, buffer, quantization, stored strings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from operator import itemgetter
from typing import Any

import numpy as np

from oplet.errors import ModelError
from oplet.model.model import Model
from oplet.ops.shared_values import Array
from oplet.ops.strings import ELEMENT_BITS, LARGEST, MAX_RANK, bytes_needed, string_offsets
from oplet.records import Row
from oplet.schema import tables
from oplet.schema.columns import Columns, LazyTables, Vectors
from oplet.schema.enums import TensorType
from oplet.texts import shown

__all__ = ["TensorRules"]

#: The most scales that are checked at once; in a damaged file many tensors may share the same bytes.
_MOST_SCALES = 1 << 22
#: The most bits of a tensor that the vectorized check accepts, well below any overflow.
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
    """Verifier of the tensors of a model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._buffers = model.lazy_root.buffers or ()
        self._count = len(self._buffers)
        self._strings: set[int] = set()  # addresses of the string buffers that were verified

    def verify(self, tensors: LazyTables[tables.Tensor], where: str) -> list[int]:
        """Check the tensors of a subgraph.

        Args:
            tensors: the tensors.
            where: the subgraph in messages.

        Returns:
            The indices of the tensors that have a value in the file.

        Raises:
            ModelError: a rule is broken.
        """
        constants: list[int] = []
        others: list[tuple[int, tables.Tensor | None]] = list(tensors.singles)
        for group in tensors.groups:
            buffers = group.integers("buffer")
            size = self._sizes.take(buffers, mode="clip")
            plain = self._are_plain(group, size)
            plain &= buffers < max(self._count, 1)
            constants += group.positions[plain & (size > 0)].tolist()
            others += [(index, None) for index in group.positions[~plain].tolist()]
        for index, single in sorted(others, key=itemgetter(0)):  # so that the error names the first
            tensor = tensors.table_at(index) if single is None else single
            if self._verify(tensor, _Label(index, tensor, where), tensors):
                constants.append(index)
        return constants

    @cached_property
    def _sizes(self) -> Array:
        """The sizes in bytes of the buffers in the FlatBuffer, -1 for those outside; 0 for buffer 0, which means no data."""
        inside = (len(b.data) if b.data is not None else 0 if b.offset <= 1 else -1 for b in self._buffers)
        sizes = np.fromiter(inside, np.int64, self._count) if self._count else np.zeros(1, np.int64)
        sizes[0] = 0
        return sizes

    def _are_plain(self, group: Columns[tables.Tensor], size: Array) -> Array:
        """Return a mask of the tensors that pass a fast, vectorized check, which most do; tensors that do not may still be valid.

        Args:
            group: the tensors.
            size: the size of each tensor's buffer in bytes.
        """
        shapes = group.values.get("shape")
        if shapes is None or "sparsity" in group.values:
            return np.zeros(len(group), np.bool_)
        ranks = shapes.lengths
        if "type" not in group.values:
            types: list[TensorType] = []
            bits: Any = ELEMENT_BITS[tables.Tensor.type]
        else:
            types = group.values["type"]
            bits = np.array([ELEMENT_BITS.get(type, 0) for type in types])
        plain = size >= 0
        for name in ("external_buffer", "is_variable"):
            if name in group.values:
                plain &= group.integers(name) == 0
        if ranks.max() > MAX_RANK or not np.all(bits):
            return np.zeros(len(group), np.bool_)
        dims = np.ones(int(ranks.sum()) + 1)
        dims[:-1] = shapes.joined()
        if dims.min() <= 0:
            return np.zeros(len(group), np.bool_)
        with np.errstate(over="ignore"):
            products = np.multiply.reduceat(dims, (ranks.cumsum() - ranks).astype(np.intp, copy=False))
        products[ranks == 0] = 1
        products *= bits
        plain &= (products <= _CERTAIN) & ((size == 0) | (size * 8 >= products))
        quantizations = group.values.get("quantization")
        if quantizations is not None:
            plain &= _are_plainly_quantized(quantizations, shapes, types)
        return plain

    def _verify(self, tensor: tables.Tensor, what: _Label, tensors: Sequence[tables.Tensor]) -> bool:
        """Check a tensor by itself, named `what` in messages; return whether it has a value in the file."""
        if not isinstance(tensor.type, TensorType):
            raise ModelError(
                f"Unsupported data type {tensor.type} in tensor. {what} has a type that this schema does not know; "
                f"types go from 0 to {int(max(TensorType))} ({max(TensorType).name})."
            )
        shape = _shape(tensor, what)
        model, size = self._model, self._count
        if tensor.buffer >= max(size, 1):
            raise ModelError(f"Tensor specifies out of range buffer {tensor.buffer} (only {size} buffers). {what} does.")
        data = None if tensor.is_variable and tensor.external_buffer else model.tensor_bytes(tensor)
        if tensor.is_variable and (tensor.external_buffer or data is not None):
            raise ModelError(f"{what} is a variable tensor with buffer or external buffer. It's not supported now.")
        if tensor.sparsity is not None:
            from oplet.model.verify.sparsity import verify_sparsity

            verify_sparsity(tensor.sparsity, shape, tensor.type, 0 if data is None else data.size, str(what))
        elif data is not None:
            needed = bytes_needed(shape, tensor.type)
            if needed is not None and data.size < needed:
                buffer = f"external buffer {tensor.external_buffer}" if tensor.external_buffer else f"buffer {tensor.buffer}"
                raise ModelError(
                    f"{what} requires {needed} bytes for the shape {shape} of {tensor.type.name}, but its {buffer} has {data.size}."
                )
            if tensor.type is TensorType.STRING and (address := data.ctypes.data) not in self._strings:
                self._strings.add(address)
                string_offsets(data, str(what))
        if tensor.quantization is not None:
            _verify_quantization(tensor.quantization, shape, tensor.type, what)
            _verify_details(tensor.quantization.details, shape, tensors, what)
        return data is not None


class _Label(Row):
    """A tensor in messages, which are seldom needed."""

    number: int
    tensor: tables.Tensor
    where: str

    def __str__(self) -> str:
        return f"Tensor {self.number} ('{shown(self.tensor.name)}') of {self.where}"


def _are_plainly_quantized(
    quantizations: LazyTables[tables.QuantizationParameters], shapes: Vectors, types: Sequence[TensorType]
) -> Array:
    """Return a mask of the quantization tables that pass a fast, vectorized check; those that do not may still be valid."""
    plain = np.ones(len(quantizations), np.bool_)
    plain[[number for number, _ in quantizations.singles]] = False
    for group in quantizations.groups:
        scales, zero_points = group.values.get("scale"), group.values.get("zero_point")
        if scales is None and "details" not in group.values:
            continue
        if scales is None or zero_points is None or "details" in group.values:
            plain[group.positions] = False
            continue
        counts, numbers, along = scales.lengths, group.positions, group.integers("quantized_dimension")
        start, rank = shapes.starts[numbers], shapes.lengths[numbers]
        inside = (along >= 0) & (along < rank)
        axis = shapes.array.take(np.where(inside, start + along, 0))
        fits = (counts == zero_points.lengths) & (counts > 0) & ((counts == 1) | (inside & (counts == axis)))
        if not fits.all() or int(counts.sum()) > _MOST_SCALES:
            plain[numbers] = False
            continue
        values, zeros, starts = scales.joined(), zero_points.joined(), counts.cumsum() - counts
        ranges = [_ZERO_POINTS.get(types[number], _ANY_ZERO_POINT) for number in numbers.tolist()] if types else ()
        starts = starts.astype(np.intp, copy=False)  # 32 bits wide in a browser
        lowest, highest = np.minimum.reduceat(zeros, starts).tolist(), np.maximum.reduceat(zeros, starts).tolist()
        if not 0 <= values.min() <= values.max() < math.inf or not all(  # False for NaN
            least <= low and high <= most for (least, most), low, high in zip(ranges or repeat(_ANY_ZERO_POINT), lowest, highest)
        ):
            plain[numbers] = False
    return plain


def _shape(tensor: tables.Tensor, what: _Label) -> list[int]:
    if tensor.shape is None:
        return []
    if tensor.shape.size > MAX_RANK:
        raise ModelError(f"{what} has {tensor.shape.size} dimensions; {MAX_RANK} are possible.")
    shape: list[int] = tensor.shape.tolist()
    if shape and min(shape) < 0:
        raise ModelError(f"{what} has the shape {shape}; a dimension must not be negative.")
    # Zeros are ignored: strides, and sizes after the reduction of an axis, are products of the other dimensions.
    if (bytes_needed([dim for dim in shape if dim], tensor.type) or 0) > LARGEST:
        raise ModelError(f"BytesRequired number of elements overflowed. {what} has the shape {shape}.")
    return shape


def _verify_quantization(quantization: tables.QuantizationParameters, shape: list[int], type: TensorType, what: _Label) -> None:
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
    low, high = (scales.min(), scales.max()) if scales.size > 1 else (scales.item(), scales.item())
    if not 0 <= low <= high < math.inf:  # False for NaN
        bad = ~(np.isfinite(scales) & (scales >= 0))
        raise ModelError(f"{what} has a scale of {scales[bad][0]}; scales are positive numbers.")
    lowest, highest = _ZERO_POINTS.get(type, _ANY_ZERO_POINT)
    low, high = (zero_points.min(), zero_points.max()) if zero_points.size > 1 else (zero_points.item(), zero_points.item())
    if not lowest <= low <= high <= highest:
        outside = zero_points[(zero_points < lowest) | (zero_points > highest)]
        raise ModelError(f"{what} has zero point {outside[0]}, outside {lowest} to {highest}, the values of {type.name}.")


def _verify_details(
    details: object | None, shape: Sequence[int], tensors: Sequence[tables.Tensor], what: _Label
) -> None:  # fmt: skip
    """Check quantization by blocks or along several axes, whose scales are tensors of their own."""
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
