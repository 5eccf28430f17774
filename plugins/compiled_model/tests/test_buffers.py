"""TensorBuffer: what goes in comes out, types and sizes are checked, and an array of the program's is the memory itself."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from plugins.compiled_model.tests.models import aligned

from oplet import TensorType
from oplet_compiled_model import CompiledModelError, TensorBuffer
from oplet_compiled_model.running.memory import PACKED, HostMemory
from oplet_compiled_model.running.packing import pack, unpack

F32 = np.float32
TYPES = [
    "float32",
    "float16",
    "float64",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "bool",
    "complex64",
]


@pytest.mark.parametrize("name", [*TYPES, "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_every_type_of_tensors_goes_in_and_out_and_lies_in_the_program_s_array(name: str) -> None:
    dtype: Any = getattr(ml_dtypes, name, None) or np.dtype(name)
    array = aligned((2, 3), dtype)
    buffer = TensorBuffer.create_from_host_memory(array)
    assert buffer.get_tensor_details() == {"dtype": name, "shape": [6]}
    buffer.write(np.ones(4, dtype))
    assert array.reshape(-1).tolist() == [1, 1, 1, 1, 0, 0]
    array[0, 0] = 0
    assert buffer.read(6, name if name in TYPES else dtype).tolist() == [0, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    "wrong", [np.zeros(2, ">f4"), np.zeros(2, "S1"), np.zeros(2, "U1"), np.zeros(2, ml_dtypes.int4), np.zeros(2, "M8[s]")]
)
def test_an_array_of_what_no_tensor_has_is_no_buffer(wrong: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="^Unsupported dtype: "):
        TensorBuffer.create_from_host_memory(wrong)


def test_values_of_another_type_are_refused_and_bytes_are_taken() -> None:
    buffer = TensorBuffer(HostMemory.new(TensorType.FLOAT32, (3,)))
    for dtype in (np.int32, np.float64, np.int8, object):
        with pytest.raises(ValueError, match="for a buffer of float32; write an array of float32"):
            buffer.write(np.zeros(3, dtype))
    buffer.write(np.array([1, 2, 3], F32).view(np.uint8))
    assert buffer.read(3, F32).tolist() == [1, 2, 3]
    assert buffer.read(3, np.uint32).view(F32).tolist() == [1, 2, 3]


def test_strings_go_in_as_bytes_or_str_and_come_out_as_bytes() -> None:
    buffer = TensorBuffer(HostMemory.new(TensorType.STRING, (4,)))
    assert buffer.read(4, object).tolist() == [b""] * 4
    for array in (np.array(["é", b"b"], object), np.array(["é", "b"]), np.array(["é".encode(), b"b"])):
        buffer.write(array)
        assert buffer.read(3, object).tolist() == ["é".encode(), b"b", b""]
    with pytest.raises(ValueError, match="bytes and str, not a int"):
        buffer.write(np.array([1], object))
    with pytest.raises(ValueError, match="read it as object"):
        buffer.read(1, F32)
    with pytest.raises(ValueError, match="write an array of objects, bytes or str"):
        buffer.write(np.zeros(1, F32))


def test_sizes_are_checked_in_litert_s_words() -> None:
    buffer = TensorBuffer(HostMemory.new(TensorType.INT64, (2, 2)))
    assert buffer.get_tensor_details() == {"dtype": "int64", "shape": [2, 2]}
    with pytest.raises(RuntimeError, match="^WriteTensorBuffer: source buffer is larger than the tensor buffer$"):
        buffer.write(np.zeros(5, np.int64))
    with pytest.raises(CompiledModelError, match="^ReadTensorToBuffer: destination buffer is larger than the tensor buffer$"):
        buffer.read((5,), np.int64)
    assert buffer.read((2, 1), np.int64).shape == (2, 1)


def test_an_array_that_is_not_aligned_is_copied_and_one_that_is_read_only_is_not_written() -> None:
    array = aligned((4,), F32, 4)
    buffer = TensorBuffer.create_from_host_memory(array)
    array[...] = 7
    assert not buffer.read(4, F32).any()
    fixed = aligned((4,), F32)
    fixed[...] = 7
    fixed.flags.writeable = False
    buffer = TensorBuffer.create_from_host_memory(fixed)
    assert buffer.read(4, F32).tolist() == [7] * 4
    with pytest.raises(ValueError, match="read-only"):
        buffer.write(np.zeros(1, F32))


def test_an_array_s_memory_lives_as_long_as_its_buffer() -> None:
    array = aligned((4,), F32)
    assert array.base is not None
    alive = weakref.ref(array.base)
    buffer = TensorBuffer.create_from_host_memory(array)
    del array
    gc.collect()
    assert alive() is not None
    buffer.destroy()
    buffer.destroy()
    gc.collect()
    assert alive() is None
    with pytest.raises(ValueError, match="^TensorBuffer has been destroyed$"):
        buffer.capsule  # noqa: B018


@given(st.sampled_from(sorted(PACKED)), st.lists(st.integers(0, 15), max_size=9))
def test_packed_values_are_unpacked_to_what_they_were(type: TensorType, raw: list[int]) -> None:
    bits = PACKED[type]
    low = np.array(raw, np.uint8) % 2**bits
    values = low if type is TensorType.UINT4 else (low.astype(np.int8) - 2**bits * (low >= 2 ** (bits - 1)))
    packed = pack(values.astype(np.uint8 if type is TensorType.UINT4 else np.int8), type)
    assert packed.size == -(-len(raw) * bits // 8)
    assert unpack(packed, type, len(raw)).tolist() == values.tolist()


def test_packed_buffers_take_values_of_ml_dtypes_and_bytes() -> None:
    buffer = TensorBuffer(HostMemory.new(TensorType.INT4, (3,)))
    buffer.write(np.array([1, -1, 2]).astype(ml_dtypes.int4))
    assert buffer.read(2, np.uint8).tolist() == [0xF1, 0x02]
    buffer.write(np.array([0x21], np.uint8))
    assert buffer.read(3, ml_dtypes.int4).tolist() == [1, 2, 2]
