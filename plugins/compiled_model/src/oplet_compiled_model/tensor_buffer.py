"""TensorBuffer: the memory of an input or output, which a run reads or writes in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import TensorType
from oplet.errors import ModelError
from oplet.toolkit import string_array, tensor_type
from oplet_compiled_model.errors import CompiledModelError
from oplet_compiled_model.running.memory import PACKED, HostMemory
from oplet_compiled_model.running.packing import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    from oplet_compiled_model.environment import Environment

__all__ = ["TensorBuffer"]


class TensorBuffer:
    """The values of one input or output; created by a CompiledModel, or from an array by `create_from_host_memory`.

    Args:
        capsule: the memory that holds the values.
        environment: an environment to keep alive.

    Examples:
        >>> buffer = TensorBuffer.create_from_host_memory(np.zeros(3, np.float32))
        >>> buffer.write(np.array([1, 2], np.float32))
        >>> buffer.read(3, np.float32).tolist()
        [1.0, 2.0, 0.0]
    """

    def __init__(self, capsule: HostMemory, environment: Environment | None = None) -> None:
        self._capsule: HostMemory | None = capsule
        self._environment = environment

    @classmethod
    def create_from_host_memory(cls, data_array: NDArray[Any]) -> TensorBuffer:
        """Return a buffer that shares an array's memory: runs read and write the array itself.

        An array whose address is no multiple of 64 bytes is copied, as in LiteRT: what the program writes into it afterwards is
        not seen; what a run writes into the buffer is in the array too.

        Args:
            data_array: a contiguous array of numbers, truth values or strings (of dtype object).

        Raises:
            ValueError: `data_array` is no array, has no dtype of tensors, or is not contiguous.
        """
        array = _checked(data_array)
        if not array.flags.c_contiguous:
            raise ValueError("data_array must be C-contiguous for zero-copy host-memory binding")
        if tensor_type(array.dtype) in PACKED:
            raise ValueError(
                f"Unsupported dtype: {array.dtype}, of which tensors have several values in a byte; let the model create the buffer."
            )
        return cls(HostMemory.of(array))

    def write(self, data_array: NDArray[Any]) -> None:
        """Copy values into the buffer, from its beginning; values of the buffer beyond these stay as they are.

        Args:
            data_array: an array of the buffer's type, of any shape; or one of uint8 with the bytes of the values.

        Raises:
            ValueError: `data_array` is no array or of another type, or the buffer shares a read-only array.
            RuntimeError: there are more values than the buffer has, or the buffer was destroyed.
        """
        memory = self._memory("WriteTensorBuffer")
        array = _strings(data_array) if memory.type is TensorType.STRING else _checked(data_array)
        values = memory.values
        if array.dtype != memory.dtype or memory.type in PACKED:
            array, values = _alike(array, memory)
        if array.size > values.size:
            raise CompiledModelError("WriteTensorBuffer: source buffer is larger than the tensor buffer")
        if not values.flags.writeable:
            raise ValueError(
                "The buffer is an array of the program's that is read-only; give create_from_host_memory a writeable one."
            )
        values[: array.size] = array.reshape(-1)

    def read(self, num_elements: int | Sequence[int], output_dtype: DTypeLike) -> NDArray[Any]:
        """Return the first values as a new array.

        Args:
            num_elements: the number of values, or the shape of the result.
            output_dtype: the dtype of the result. If it is not the buffer's, the bytes are reinterpreted.

        Raises:
            ValueError: no tensor has this dtype, or strings are read as numbers or numbers as strings.
            RuntimeError: the buffer has fewer values, or was destroyed.
        """
        dtype = _known(output_dtype)
        result: NDArray[Any] = np.empty(num_elements, dtype)
        memory = self._memory("ReadTensorToBuffer")
        flat, values = result.reshape(-1), memory.values
        if dtype != values.dtype:
            if dtype.hasobject or values.dtype.hasobject:
                raise ValueError(f"Unsupported dtype: {dtype} for a buffer of {memory.type_name}; read it as {values.dtype}.")
            if memory.type in PACKED and tensor_type(dtype) is memory.type:
                values = unpack(values, memory.type, values.size * (8 // PACKED[memory.type])).astype(dtype)
            else:
                flat, values = flat.view(np.uint8), memory.bytes
        if flat.size > values.size:
            raise CompiledModelError("ReadTensorToBuffer: destination buffer is larger than the tensor buffer")
        flat[...] = values[: flat.size]
        return result

    def get_tensor_details(self) -> dict[str, Any]:
        """Return the type and shape: {"dtype": name, "shape": [sizes]}. A buffer made from an array has one dimension.

        Raises:
            RuntimeError: the buffer was destroyed.
        """
        memory = self._memory("GetTensorDetails")
        return {"dtype": memory.type_name, "shape": [memory.values.size] if memory.is_given else list(memory.shape)}

    def destroy(self) -> None:
        """Free the buffer's memory; the buffer cannot be used afterwards."""
        memory, self._capsule, self._environment = self._capsule, None, None
        if memory is not None:
            memory.release()

    @property
    def capsule(self) -> HostMemory:
        """The memory that holds the values; opaque to applications.

        Raises:
            ValueError: the buffer was destroyed.
        """
        if self._capsule is None:
            raise ValueError("TensorBuffer has been destroyed")
        return self._capsule

    def _memory(self, what: str) -> HostMemory:
        if self._capsule is None:
            raise CompiledModelError(f"{what}: invalid capsule")
        return self._capsule


def _checked(array: object) -> NDArray[Any]:
    """Return what is given as values, if it is an array of a type that tensors have.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(array, np.ndarray):
        raise ValueError("data_array must be a NumPy array")
    _known(array.dtype)
    return array


def _strings(array: object) -> NDArray[Any]:
    """Return an array of strings as one of bytes; any other array as it is.

    Raises:
        ValueError: it is no array, or one of objects that are not all bytes or str.
    """
    if not isinstance(array, np.ndarray):
        raise ValueError("data_array must be a NumPy array")
    if array.dtype.kind not in "OSU":
        return array
    found = string_array(array).reshape(-1)
    items = [item.encode() if isinstance(item, str) else item for item in found.tolist()]
    if wrong := [item for item in items if not isinstance(item, bytes)]:
        raise ValueError(f"A buffer of strings takes bytes and str, not a {type(wrong[0]).__name__}.")
    made = np.empty(len(items), object)
    made[:] = items
    return made


def _known(dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype, if tensors may have values of it.

    Raises:
        ValueError: they may not, in LiteRT's words.
    """
    try:
        found: np.dtype[Any] = np.dtype(dtype)
        if dtype is None or found.kind in "SU" or not found.isnative:
            raise ValueError(f"Unsupported dtype: {dtype}")
        tensor_type(found)
    except (TypeError, ModelError) as error:
        raise ValueError(f"Unsupported dtype: {dtype}") from error
    return found


def _alike(array: NDArray[Any], memory: HostMemory) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an array that differs from a memory in dtype, and the memory's values, in a common form.

    Raises:
        ValueError: the values are of another type.
    """
    if array.dtype.hasobject or memory.dtype.hasobject:
        wanted = "an array of objects, bytes or str" if memory.dtype.hasobject else f"an array of {memory.type_name}"
        raise ValueError(f"Unsupported dtype: {array.dtype} for a buffer of {memory.type_name}; write {wanted}.")
    if memory.type in PACKED and array.dtype != np.uint8 and tensor_type(array.dtype) is memory.type:
        return pack(array.astype(np.int8), memory.type), memory.values
    if array.dtype != np.uint8:
        raise ValueError(
            f"Unsupported dtype: {array.dtype} for a buffer of {memory.type_name}; write an array of {memory.type_name}, as by "
            "array.astype, or the bytes of its values as uint8."
        )
    return array, memory.bytes
