"""Tensors of the protocol, and options, without a server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import ModelError, TensorError
from oplet_serve.options import Options
from oplet_serve.values.tensors import TensorSpec, as_json, as_raw, read_tensor


def spec(dtype: Any, *shape: int) -> TensorSpec:
    return TensorSpec("x", np.dtype(dtype), shape)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int64, np.uint64, np.float16, np.float32, np.float64])
def test_raw_bytes_and_elements_are_read_alike(dtype: Any) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    taken = spec(dtype, -1, 2)
    for data in (as_raw(array), as_json(array)[0].tolist(), array.tolist()):
        found = read_tensor(taken, taken.datatype, [2, 2], data)
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)


def test_text_has_its_length_in_front() -> None:
    array = np.array([b"a", b"", b"\xff\xfe"], object)
    raw = as_raw(array)
    assert raw == b"\1\0\0\0a\0\0\0\0\2\0\0\0\xff\xfe"
    assert read_tensor(spec(object, 3), "BYTES", [3], raw).tolist() == array.tolist()
    assert as_json(array) == (["YQ==", "", "//4="], True)
    for broken in (raw[:1], raw[:4], raw[:-1], raw[:5], raw + b"\1"):
        with pytest.raises(TensorError, match="input 'x'"):
            read_tensor(spec(object, 3), "BYTES", [3], broken)


def test_large_numbers_keep_every_bit() -> None:
    values = [0, 2**53 + 1, 2**64 - 1]
    assert read_tensor(spec(np.uint64, 3), "UINT64", [3], values).tolist() == values
    with pytest.raises(TensorError, match="18446744073709551616 is beyond UINT64"):
        read_tensor(spec(np.uint64, 3), "UINT64", [3], [0, 2**63, 2**64])
    with pytest.raises(TensorError, match="beyond FP16"):
        read_tensor(spec(np.float16, 1), "FP16", [1], [70000])
    assert np.isinf(read_tensor(spec(np.float32, 1), "FP32", [1], [float("inf")]))[0]


def test_types_that_the_protocol_does_not_have_are_refused() -> None:
    with pytest.raises(ModelError, match="complex64, for which the Open Inference Protocol has no datatype"):
        assert spec(np.complex64, 1).datatype


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"worker": 1}, "the option 'worker'"),
        ({"workers": 0}, "'workers'"),
        ({"workers": True}, "'workers'"),
        ({"signature": 1}, "'signature'"),
    ],
)
def test_options_are_checked(extra: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError, match=told):
        Options.read("m", extra)
    assert Options.read("m", {"delegates": "example", "max_seconds": 2}).limits.max_seconds == 2.0
