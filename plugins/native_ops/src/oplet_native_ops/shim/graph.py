"""A `TfLiteContext` and its tensors, kept in sync with oplet's."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from oplet import Allocation, Tensor, TensorType
from oplet_native_ops.shim import layouts
from oplet_native_ops.shim.layouts import Memory
from oplet_native_ops.shim.library import shim
from oplet_native_ops.values.strings import pack_strings
from oplet_native_ops.values.types import TYPE_NUMBERS

__all__ = ["NativeGraph", "address_of", "int_values"]

_MEMORY = {
    Allocation.NONE: Memory.ARENA_RW,
    Allocation.CONSTANT: Memory.MMAP_RO,
    Allocation.COMPUTED: Memory.MMAP_RO,
    Allocation.ARENA: Memory.ARENA_RW,
    Allocation.PERSISTENT: Memory.ARENA_RW_PERSISTENT,
    Allocation.DYNAMIC: Memory.ARENA_RW,
}


def int_values(values: Sequence[int]) -> Any:
    """Return the values as a C int array."""
    return (ctypes.c_int * len(values))(*values)


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Return the address of a contiguous array's data."""
    return int(array.__array_interface__["data"][0])


class NativeGraph:
    """One `TfLiteContext`: for a single node, or for a delegate's whole subgraph.

    Args:
        tensors: the number of oplet's tensors, which have the same indices in C; those that a library adds come after them.
        threads: the number of threads that libraries may use.

    Attributes:
        pointer: the address of the TfLiteContext; None once it is freed.
    """

    def __init__(self, tensors: int, threads: int) -> None:
        self._shim = shim()
        self.pointer: int | None = self._shim.oplet_native_graph(tensors, threads)
        if not self.pointer:
            raise MemoryError
        self._strings: dict[int, Any] = {}

    def close(self) -> None:
        """Free the context and all memory that the library requested."""
        pointer, self.pointer = self.pointer, None
        if pointer:
            self._shim.oplet_native_graph_free(pointer)
        self._strings.clear()

    @property
    def tensor_count(self) -> int:
        """The number of tensors, including those that the library added."""
        return int(self._shim.oplet_native_tensor_count(self.pointer))

    @property
    def error(self) -> str:
        """The errors that the library reported in its last call, in one line; "" if none."""
        return " ".join(self._shim.oplet_native_error(self.pointer).decode("utf-8", "replace").split())

    def tensor(self, index: int) -> layouts.Tensor:
        """Return a tensor's C struct, valid until the library adds a tensor."""
        found: layouts.Tensor = self._shim.oplet_native_tensor(self.pointer, index).contents
        return found

    def describe(self, tensor: Tensor) -> None:
        """Copy a tensor's fixed properties to C: type, name, shape signature, quantization."""
        index = tensor.index
        signature = tensor.shape_signature if -1 in tensor.shape_signature else ()
        name = tensor.name.encode("utf-8", "surrogateescape").replace(b"\0", b"")
        done = self._shim.oplet_native_describe(
            self.pointer, index, TYPE_NUMBERS[tensor.type], name, tensor.is_variable, len(signature), int_values(signature)
        )
        quantization = tensor.quantization
        if done and quantization is not None and len(quantization.scales):
            scales = np.ascontiguousarray(quantization.scales, np.float32)
            zeros = np.ascontiguousarray(quantization.zero_points, np.int32)
            done = self._shim.oplet_native_quantize(
                self.pointer,
                index,
                len(scales),
                scales.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                len(zeros),
                zeros.ctypes.data_as(ctypes.POINTER(ctypes.c_int)),
                quantization.quantized_dimension,
            )
        if not done:
            raise MemoryError

    def set_shape(self, tensor: Tensor, memory: int | None = None) -> None:
        """Copy a tensor's present shape to C; free memory that the library had allocated for it.

        Args:
            memory: the TfLiteAllocationType to set (see `Memory`); by default that of the tensor's allocation.
        """
        size = 0 if tensor.type is TensorType.STRING else tensor.nbytes
        kind = _MEMORY[tensor.allocation] if memory is None else memory
        if not self._shim.oplet_native_shape(self.pointer, tensor.index, kind, len(tensor.shape), int_values(tensor.shape), size):
            raise MemoryError

    def give(self, tensor: Tensor, index: int | None = None) -> int:
        """Point the C tensor at the memory of oplet's tensor (strings: at a copy in LiteRT's layout); return the address.

        Args:
            index: the C tensor's index; None for that of `tensor`.
        """
        index = tensor.index if index is None else index
        if tensor.type is TensorType.STRING:
            packed = pack_strings(tensor.data)
            self._strings[index] = buffer = ctypes.create_string_buffer(packed, len(packed))
            address, size = ctypes.addressof(buffer), len(packed)
        else:
            address, size = address_of(tensor.data), tensor.nbytes
        self._shim.oplet_native_data(self.pointer, index, address, size)
        return address
