"""Tensors at run time: type, shape, quantization and data, for kernels and delegates."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import numpy as np

from oplet.errors import ModelError, PluginError, StateError
from oplet.ops.ensure import EnsureError
from oplet.ops.shared_values import Array, Computed
from oplet.records import Row
from oplet.schema.enums import TensorType
from oplet.schema.tables import SparsityParameters
from oplet.texts import shown

__all__ = ["Allocation", "Array", "Quantization", "Tensor", "TensorBuilder", "numpy_dtype", "tensor_type"]

Shape = tuple[int, ...]

_DTYPES: Final[dict[TensorType, np.dtype[Any]]] = {
    TensorType.FLOAT32: np.dtype(np.float32),
    TensorType.FLOAT16: np.dtype(np.float16),
    TensorType.INT32: np.dtype(np.int32),
    TensorType.UINT8: np.dtype(np.uint8),
    TensorType.INT64: np.dtype(np.int64),
    TensorType.STRING: np.dtype(object),
    TensorType.BOOL: np.dtype(np.bool_),
    TensorType.INT16: np.dtype(np.int16),
    TensorType.COMPLEX64: np.dtype(np.complex64),
    TensorType.INT8: np.dtype(np.int8),
    TensorType.FLOAT64: np.dtype(np.float64),
    TensorType.COMPLEX128: np.dtype(np.complex128),
    TensorType.UINT64: np.dtype(np.uint64),
    TensorType.RESOURCE: np.dtype(object),
    TensorType.VARIANT: np.dtype(object),
    TensorType.UINT32: np.dtype(np.uint32),
    TensorType.UINT16: np.dtype(np.uint16),
    # Values of packed types are unpacked to one byte each.
    TensorType.INT4: np.dtype(np.int8),
    TensorType.INT2: np.dtype(np.int8),
    TensorType.UINT4: np.dtype(np.uint8),
}

_ML_DTYPES: Final = {
    TensorType.BFLOAT16: "bfloat16",
    TensorType.FLOAT8_E4M3FN: "float8_e4m3fn",
    TensorType.FLOAT8_E5M2: "float8_e5m2",
}


def numpy_dtype(type: TensorType) -> np.dtype[Any]:
    """Return the numpy dtype of a tensor type; `object` for strings (bytes), resources and variants.

    bfloat16 and the 8-bit floats have dtypes of ml_dtypes, which is imported only for models that use them.
    """
    found = _DTYPES.get(type)
    if found is None:
        import ml_dtypes

        found = np.dtype(getattr(ml_dtypes, _ML_DTYPES[type]))
    return found


#: Types that share a numpy dtype with another type, or whose dtype needs ml_dtypes.
_AMBIGUOUS = {
    TensorType.INT4, TensorType.INT2, TensorType.UINT4, TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT,
    TensorType.BFLOAT16, TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2,
}  # fmt: skip
_TYPES = {numpy_dtype(t): t for t in TensorType if t not in _AMBIGUOUS}


def tensor_type(dtype: Any) -> TensorType:
    """Return the tensor type of a numpy dtype; a TensorType is returned unchanged.

    Raises:
        ModelError: the format has no type for it, or it is not a dtype.
    """
    if isinstance(dtype, TensorType):
        return dtype
    try:
        if dtype is None:  # numpy reads None as float64
            raise TypeError
        dtype = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        raise ModelError(
            f"{shown(repr(dtype))} is no type of tensors; give a TensorType or a numpy dtype, such as 'int8'."
        ) from None
    if dtype.kind in "OSU":
        return TensorType.STRING
    found = _TYPES.get(dtype)
    if found is None:
        if dtype.name.upper() in TensorType.__members__:  # bfloat16 and the 8-bit floats of ml_dtypes
            return TensorType[dtype.name.upper()]
        raise ModelError(f"The format has no tensor type for numpy's {dtype}.")
    return found


class Allocation(Enum):
    """Where a tensor's memory comes from (LiteRT's TfLiteAllocationType)."""

    NONE = "none"
    CONSTANT = "constant"  #: a view of the model file, or decoded from it
    ARENA = "arena"  #: in the arena, planned by lifetimes: overwritten after its last reader has run
    PERSISTENT = "persistent"  #: kept between runs: variables and persistent temporaries
    DYNAMIC = "dynamic"  #: allocated at run time, when its shape is known
    COMPUTED = "computed"  #: a constant that is computed while the graph is prepared


class Quantization:
    """Quantization of a tensor: real = scale * (value - zero_point).

    Attributes:
        scales: float32, of one dimension: one value, or one per slice along `quantized_dimension`; for blockwise quantization one
            per block, in the order of the weights.
        zero_points: int64, as many as scales; empty where blocks have none.
        quantized_dimension: the axis along which the scales differ.
        block_size: number of values along the last axis that share a scale; 0 without blocks.
    """

    __slots__ = ("block_size", "quantized_dimension", "scales", "zero_points")

    def __init__(self, scales: Array, zero_points: Array, quantized_dimension: int = 0, block_size: int = 0) -> None:
        self.scales = scales
        self.zero_points = zero_points
        self.quantized_dimension = quantized_dimension
        self.block_size = block_size

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return len(self.scales) > 1

    def broadcast(self, rank: int) -> tuple[Array, Array]:
        """Return the scales and zero points in shapes that broadcast against the values: real = (data - zero_points) * scales.

        Args:
            rank: the tensor's number of dimensions.

        Returns:
            float32 and int64 arrays: per channel of shape (1, ..., n, ..., 1), with n along `quantized_dimension`; of shape () for
            a single scale.

        Raises:
            EnsureError: the quantization is blockwise, or `quantized_dimension` is not below `rank`.
        """
        if self.block_size or (self.per_channel and not 0 <= self.quantized_dimension < rank):
            where = "by blocks" if self.block_size else f"along dimension {self.quantized_dimension} of {rank}"
            raise EnsureError(f"a tensor is quantized {where}, which cannot be done here; give it one scale, or one per channel.")
        shape = [1] * rank
        if self.per_channel:
            shape[self.quantized_dimension] = len(self.scales)
        else:
            shape = []
        return self.scales.reshape(shape), self.zero_points.reshape(shape)


#: Module variables are faster to look up than members of an enumeration, and these are compared often.
_CONSTANT, _COMPUTED, _DYNAMIC = Allocation.CONSTANT, Allocation.COMPUTED, Allocation.DYNAMIC


class TensorBuilder(Row):
    """Description of a tensor that a kernel adds to the graph with `Context.add_tensor`.

    Attributes:
        type: the element type, a TensorType or a numpy dtype.
        name: its name in messages.
        allocation: DYNAMIC (resized at run time), ARENA (valid during the node's own run) or PERSISTENT (kept between runs); others
            are refused.
        quantization: scales and zero points; None if it is not quantized.
        shape: its initial shape, which `prepare` may change with `resize_tensor`.
    """

    type: Any = TensorType.FLOAT32
    name: str = ""
    allocation: Allocation = Allocation.ARENA
    quantization: Quantization | None = None
    shape: Shape = ()


class Tensor:
    """One tensor at run time.

    Attributes:
        index: its number in the subgraph.
        name: its name in the model, "" if it has none.
        type: its element type.
        dtype: the numpy dtype of `data`.
        shape: the present shape.
        shape_signature: the shape in the model, -1 where a dimension is free.
        quantization: scales and zero points, None if it is not quantized.
        sparsity: how a sparse constant is stored, None if it is dense.
        is_variable: whether its value is kept between runs.
        allocation: where its memory comes from.
        delegate: the delegate that writes it or keeps its value in a buffer; None where the runtime does.
        buffer_handle: the delegate's handle of that buffer; None if there is none.
        data_is_stale: whether the buffer is newer than `data`.
    """

    __slots__ = (
        "_array",
        "_computed",
        "_load",
        "allocation",
        "buffer_handle",
        "data_is_stale",
        "delegate",
        "dtype",
        "index",
        "is_variable",
        "name",
        "quantization",
        "resized",
        "shape",
        "shape_signature",
        "sparsity",
        "type",
    )

    def __init__(
        self,
        index: int,
        name: str,
        type: TensorType,
        shape: Shape,
        *,
        shape_signature: Shape | None = None,
        quantization: Quantization | None = None,
        sparsity: SparsityParameters | None = None,
        is_variable: bool = False,
        allocation: Allocation = Allocation.ARENA,
    ) -> None:
        self.index = index
        self.name = name
        self.type = type
        dtype = _DTYPES.get(type)
        self.dtype = numpy_dtype(type) if dtype is None else dtype
        self.shape = shape
        self.shape_signature = shape_signature if shape_signature is not None else shape
        self.quantization = quantization
        self.sparsity = sparsity
        self.is_variable = is_variable
        self.allocation = allocation
        self.delegate: Any = None
        self.buffer_handle: Any = None
        self.data_is_stale = False
        #: Whether the shape changed since the nodes that read the tensor were prepared.
        self.resized = False
        self._array: Array | None = None
        self._load: Callable[[], Array] | None = None
        self._computed: Computed | None = None

    @property
    def data(self) -> Array:
        """The values: an array of `shape` and `dtype`. Constants are read-only.

        Constants are decoded on first access: views of the file for most types, a copy for strings and for packed int4 and int2,
        which numpy cannot address.

        Raises:
            StateError: the tensor has no memory yet.
        """
        array = self._array
        if array is None:
            if self._load is None:
                raise StateError(
                    f"Tensor data is null. Run allocate_tensors() first; {self} has no memory yet. In a kernel, constants alone have "
                    "values in `prepare`, and what is dynamic has none before `context.resize_tensor` in the run."
                )
            array = self._array = self._load()
        return array

    @data.setter
    def data(self, array: Array) -> None:
        """Set the array of a tensor that has none. Kernels write into an existing array, as other nodes are bound to it.

        Raises:
            PluginError: the tensor has another array, or this one is not of its dtype and shape.
        """
        if array is self._array:
            return  # `tensor.data += 1` writes and then assigns
        kind, shape = getattr(array, "dtype", type(array).__name__), getattr(array, "shape", ())
        if self.has_data or kind != self.dtype or shape != self.shape:
            raise PluginError(
                f"The kernel puts an array of {kind} {list(shape)} in the place of the data of {self}; a kernel writes into the array "
                "that is there (tensor.data[...] = values), and sets another shape with context.resize_tensor."
            )
        self._array = array

    def set_memory(self, array: Array | None) -> None:
        """Set the array of the tensor, or remove it with None. For the runtime, not for kernels."""
        self._array = array
        if self._computed is not None:
            self._computed = self._load = None

    @property
    def source(self) -> Array | Computed:
        """Identity of a constant's values: its array, or the `Computed` that stands for an array that may be released."""
        return self.data if self._computed is None else self._computed

    def set_computed(self, computed: Computed, load: Callable[[], Array]) -> None:
        """Set a constant that was computed, and the function that computes it again. For the runtime, not for kernels."""
        self._array, self._computed, self._load = computed.get(), computed, load

    @property
    def is_computed(self) -> bool:
        """Whether a `Computed` stands for the constant's array, which may be released."""
        return self._computed is not None

    @property
    def is_let_go(self) -> bool:
        """Whether the constant's array was released; it is computed again when it is read."""
        return self._computed is not None and self._array is None

    def let_go(self) -> None:
        """Release the array, if it can be computed again when it is next read. For the runtime, not for kernels."""
        if self._computed is not None and self._computed.let_go():
            self._array = None

    def set_loader(self, load: Callable[[], Array] | None, computed: Computed | None = None) -> None:
        """Set the function that decodes the values, or None; they may be released if `computed` stands for them. For the runtime."""
        self._load, self._computed = load, computed

    @property
    def has_data(self) -> bool:
        """Whether `data` can be read."""
        return self._array is not None or self._load is not None

    @property
    def is_constant(self) -> bool:
        """Whether the value is known before the first run and never changes."""
        allocation = self.allocation
        return allocation is _CONSTANT or allocation is _COMPUTED

    @property
    def is_dynamic(self) -> bool:
        """Whether the shape is known only at run time."""
        return self.allocation is _DYNAMIC

    @property
    def ndim(self) -> int:
        """Number of dimensions of the present shape."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements of the present shape."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the values in memory; 8 for each reference to a string."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def scale(self) -> float:
        """The scale of a tensor that is quantized per tensor, the first one if there are several (`per_channel`); 0.0 if not quantized.

        Raises:
            EnsureError: the quantization is blockwise.
        """
        quantization = self.quantization
        if quantization is None or not len(quantization.scales):
            return 0.0
        if quantization.block_size:
            raise EnsureError(f"{self} is quantized by blocks, which cannot be done here; give it one scale, or one per channel.")
        return float(quantization.scales.item(0))

    @property
    def zero_point(self) -> int:
        """The zero point of a tensor that is quantized per tensor, the first one if there are several; 0 if not quantized.

        Raises:
            EnsureError: the quantization is blockwise.
        """
        if self.quantization is None or not len(self.quantization.zero_points):
            return 0
        return int(self.quantization.zero_points.item(0))

    @property
    def per_channel(self) -> bool:
        """Whether it has several scales, so that `scale` and `zero_point` are not those of all values."""
        return self.quantization is not None and self.quantization.per_channel

    def __repr__(self) -> str:
        name = f" '{shown(self.name)}'" if self.name else ""
        return f"tensor {self.index}{name} ({self.type.name} {list(self.shape)})"
