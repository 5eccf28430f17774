"""Strings are bytes: what is given comes back, NULs and all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.litert.moving import moving_model

from oplet import Interpreter
from oplet.builder import ModelBuilder, TensorType
from oplet.errors import TensorError

PAYLOAD = b"\0abcd\0\0"


def both_ways(value: Any, shape: list[int]) -> list[Any]:
    """What set_tensor, get_tensor and a signature runner make of a value."""
    interpreter = Interpreter(model_content=moving_model(TensorType.STRING, shape))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, value)
    interpreter.invoke()
    answers = [interpreter.get_tensor(0), interpreter.get_tensor(1), interpreter.get_signature_runner()(x=value)["y"]]
    assert all(isinstance(answer, np.ndarray) and answer.dtype == object for answer in answers)
    first, *others = (answer.tolist() for answer in answers)
    assert others == [first, first]
    assert all(type(item) is bytes for item in answers[0].ravel().tolist())
    return first  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "value",
    [
        np.array(PAYLOAD),
        PAYLOAD,
        np.bytes_(PAYLOAD),
        PAYLOAD.decode(),
        np.str_(PAYLOAD.decode()),
        np.array(PAYLOAD, object),
        np.array(PAYLOAD.decode(), object),
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}",
)
def test_a_single_string_keeps_its_trailing_nuls(value: Any) -> None:
    assert both_ways(value, []) == PAYLOAD


def test_an_array_of_dtype_s_without_dimensions_is_all_its_bytes_as_in_litert() -> None:
    assert both_ways(np.array(b"abc", "S6"), []) == b"abc\0\0\0"


@pytest.mark.parametrize(
    "value",
    [
        np.array([PAYLOAD, b"\0"], object),
        np.array([PAYLOAD.decode(), "\0"], object),
        np.array([np.bytes_(PAYLOAD), np.str_("\0")], object),
        [PAYLOAD, b"\0"],
        (PAYLOAD.decode(), b"\0"),
    ],
    ids=["bytes", "str", "numpy's scalars", "list", "tuple"],
)
def test_strings_in_arrays_of_objects_and_lists_keep_their_trailing_nuls(value: Any) -> None:
    assert both_ways(value, [2]) == [PAYLOAD, b"\0"]


def test_what_numpy_pads_with_nuls_comes_without_them() -> None:
    assert both_ways(np.array([b"ab", b"abcd"]), [2]) == [b"ab", b"abcd"]
    assert both_ways(np.array([["ä", "日本"]]), [1, 2]) == [["ä".encode(), "日本".encode()]]


@pytest.mark.parametrize("value", [3, 1.5, True, np.zeros(2, np.float32), np.ones((), np.int8), [1, 2], [1.5]])
def test_values_that_are_no_strings_are_refused_in_litert_s_words(value: Any) -> None:
    array = np.asarray(value)
    words = f"Cannot set tensor: Got value of type {array.dtype.name.upper()} but expected type STRING for input 0, name: x "
    with pytest.raises(TensorError, match=words):
        both_ways(value, list(array.shape))


@pytest.mark.parametrize("dtype", ["M8[s]", "V4", "longdouble"])
def test_types_that_the_format_lacks_are_refused_in_litert_s_words(dtype: str) -> None:
    with pytest.raises(ValueError, match=r"Got value of type NOTYPE \(.*\) but expected type STRING"):
        both_ways(np.zeros(2, dtype), [2])


@pytest.mark.parametrize("value", [[b"a", 3], [b"a", None], [b"a", "\udc80"], [b"a", bytearray(b"b")], None])
def test_elements_that_are_no_strings_are_refused_by_position(value: Any) -> None:
    with pytest.raises(TensorError, match=f"element {0 if value is None else 1} of the value for tensor 0 'x'"):
        both_ways(np.array(value, object), [] if value is None else [2])


def test_strings_in_constants_and_through_kernels_keep_their_nuls() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    single = graph.add_tensor("single", TensorType.STRING, [], data=np.array(PAYLOAD))
    several = graph.add_tensor("several", TensorType.STRING, [3], data=[b"a\0", b"a", PAYLOAD])
    x = graph.add_tensor("x", TensorType.STRING, [])
    dims, times, indices = (
        graph.add_tensor(name, "int32", [len(data)], data=data) for name, data in (("d", [2]), ("t", [2]), ("i", [2, 0]))
    )
    made = {
        "filled": graph.add_tensor("filled", TensorType.STRING, [2]),
        "filled again": graph.add_tensor("filled again", TensorType.STRING, [2]),
        "tiled": graph.add_tensor("tiled", TensorType.STRING, [6]),
        "gathered": graph.add_tensor("gathered", TensorType.STRING, [2]),
        "equal": graph.add_tensor("equal", "bool", [3]),
    }
    graph.add_operator("FILL", [dims, single], [made["filled"]])
    graph.add_operator("FILL", [dims, x], [made["filled again"]])
    graph.add_operator("TILE", [several, times], [made["tiled"]])
    graph.add_operator("GATHER", [several, indices], [made["gathered"]])
    graph.add_operator("EQUAL", [several, x], [made["equal"]])
    graph.set_inputs(x)
    graph.set_outputs(*made.values())
    builder.add_signature("serve", {"x": x}, made)
    answers = Interpreter(model_content=builder.to_bytes()).get_signature_runner()(x=np.array(b"a\0"))
    assert answers["filled"].tolist() == [PAYLOAD] * 2
    assert answers["filled again"].tolist() == [b"a\0"] * 2
    assert answers["tiled"].tolist() == [b"a\0", b"a", PAYLOAD] * 2
    assert answers["gathered"].tolist() == [PAYLOAD, b"a\0"]
    assert answers["equal"].tolist() == [True, False, False]


@pytest.mark.parametrize("value", ["a\0", b"a\0"])
def test_strings_of_as_many_dimensions_as_numpy_has_are_set(value: Any) -> None:
    given = np.full([1] * 63 + [2], value, object)
    assert both_ways(given, list(given.shape)) == np.full(given.shape, b"a\0", object).tolist()


def test_strings_may_be_given_before_tensors_are_allocated_as_to_litert() -> None:
    rival = pytest.importorskip("ai_edge_litert.interpreter").Interpreter
    content = moving_model(TensorType.STRING, [2])
    value = np.array([PAYLOAD, b"b"], object)
    for make in (rival, Interpreter):
        interpreter = make(model_content=content)
        interpreter.set_tensor(0, value)
        assert interpreter.get_tensor(0).tolist() == [PAYLOAD, b"b"]
        interpreter.allocate_tensors()
        interpreter.invoke()
        assert interpreter.get_tensor(1).tolist() == [PAYLOAD, b"b"]
        with pytest.raises(ValueError, match="ot set tensor"):
            interpreter.set_tensor(0, np.array([b"one"], object))


def test_numbers_have_no_memory_before_tensors_are_allocated() -> None:
    interpreter = Interpreter(model_content=moving_model(TensorType.FLOAT32, [2]))
    with pytest.raises(TensorError, match="Try calling allocate_tensors"):
        interpreter.set_tensor(0, np.zeros(2, np.float32))


@pytest.mark.parametrize("kind", [TensorType.FLOAT32, TensorType.STRING])
def test_arrays_without_elements_may_be_given_before_tensors_are_allocated_as_to_litert(kind: TensorType) -> None:
    rival = pytest.importorskip("ai_edge_litert.interpreter").Interpreter
    for make in (rival, Interpreter):
        interpreter = make(model_content=moving_model(kind, [0, 3]))
        for shape in ([0, 3], [0, 7]):
            interpreter.resize_tensor_input(0, shape)
            interpreter.set_tensor(0, np.zeros(shape, np.float32 if kind is TensorType.FLOAT32 else object))
            interpreter.allocate_tensors()
            interpreter.invoke()
            assert interpreter.get_tensor(1).size == 0
