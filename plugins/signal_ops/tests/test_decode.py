"""TFLM_DECODE: what is packed comes back, as it does in tflite-micro, and damaged data is refused."""

from __future__ import annotations

import heapq
import itertools
import random
import struct
from collections import Counter
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, Limits, MutableOpResolver
from oplet.errors import LimitError, OpletError
from oplet_signal_ops import register_ops
from oplet_testing import OpContract, one_op_model
from oplet_testing.one_op import Spec

RANDOM = np.random.default_rng(11)
LOOK_UP, HUFFMAN, PRUNE = range(3)
Array = np.ndarray[Any, Any]


def telling(kind: int, *rest: int, version: int = 1, own: int = 1) -> bytes:
    return bytes([kind, version, 0, 0, own, *rest]).ljust(16, b"\0")


def packed_numbers(numbers: Array, width: int) -> Array:
    text = "".join(format(int(number), f"0{width}b") for number in numbers.reshape(-1))
    return bits_of(text)


def bits_of(text: str) -> Array:
    text = text.ljust(-(-len(text) // 8) * 8, "0")
    return np.array([int(text[at : at + 8], 2) for at in range(0, len(text), 8)], np.uint8)


def model(*parts: tuple[Array, bytes, Spec], fed: bool = False) -> bytes:
    inputs: list[Any] = []
    for data, told, _ in parts:
        inputs += [Spec("uint8", data.shape) if fed else data, np.frombuffer(told, np.uint8)]
    return one_op_model("TFLM_DECODE", inputs, [output for *_, output in parts])


def decoded(*parts: tuple[Array, bytes, Spec], **arguments: Any) -> list[Any]:
    resolver = MutableOpResolver()
    register_ops(resolver)
    interpreter = Interpreter(model_content=model(*parts), op_resolver=resolver, plugins=[], **arguments)
    interpreter.allocate_tensors()
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def micro(*parts: tuple[Array, bytes, Spec]) -> list[Any]:
    """tflite-micro's own answers; the test is skipped where it has no such operator."""
    runtime = pytest.importorskip("tflite_micro", reason="pip install tflite-micro to compare with its own kernels").runtime
    try:
        interpreter = runtime.Interpreter.from_bytes(model(*parts), arena_size=1 << 22)
    except RuntimeError:
        pytest.skip("this tflite-micro has no TFLM_DECODE; a newer one compares with its own kernel")
    interpreter.invoke()
    return [np.array(interpreter.get_output(index)) for index in range(len(parts))]


# Tables of values ----------------------------------------------------------------------------------------------


def looked_up(width: int, dtype: str, shape: tuple[int, ...], axis: int | None) -> tuple[Array, bytes, Spec, Array]:
    channels = 1 if axis is None else shape[axis]
    stride = min(1 << width, 100)
    tables = (
        RANDOM.integers(-120, 120, (channels, stride)) > 0 if dtype == "bool" else RANDOM.integers(-120, 120, (channels, stride))
    ).astype(dtype)
    numbers = RANDOM.integers(0, stride, shape)
    channel = np.zeros(shape, int) if axis is None else np.indices(shape)[axis]
    scaled = {} if axis is None else {"scale": [0.5] * channels, "zero_point": [0] * channels, "axis": axis}
    told = telling(LOOK_UP, width, stride) + tables.tobytes()
    return packed_numbers(numbers, width), told, Spec(dtype, shape, **scaled), tables[channel, numbers]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "bool"])
@pytest.mark.parametrize("width", range(1, 8))
@pytest.mark.parametrize("axis", [None, 0, 2])
def test_values_are_looked_up(width: int, dtype: str, axis: int | None) -> None:
    if axis is not None and dtype in ("float32", "bool"):
        return
    data, told, output, wanted = looked_up(width, dtype, (3, 5, 4), axis)
    [found] = decoded((data, told, output))
    np.testing.assert_array_equal(found, wanted)


def test_many_values_are_looked_up_in_pieces() -> None:
    data, told, output, wanted = looked_up(3, "int8", (7, 30011), 0)
    np.testing.assert_array_equal(decoded((data, told, output))[0], wanted)


@pytest.mark.parametrize(("width", "axis"), list(itertools.product((1, 2, 3, 4, 5, 7), (None, 0, 2))))
def test_values_are_tflite_micro_s(width: int, axis: int | None) -> None:
    data, told, output, wanted = looked_up(width, "int8", (4, 9, 8), axis)
    np.testing.assert_array_equal(micro((data, told, output))[0].reshape(wanted.shape), wanted)


# Without zeros -------------------------------------------------------------------------------------------------


def pruned(dtype: str, zeros: list[int], axis: int) -> tuple[Array, bytes, Spec, Array]:
    shape = (3, 7, 4)
    values = RANDOM.integers(-99, 99, shape)
    kept = RANDOM.random(shape) < 0.4
    channel = np.zeros(shape, int) if len(zeros) == 1 else np.indices(shape)[axis]
    wanted = np.where(kept, values, np.array(zeros)[channel]).astype(dtype)
    if dtype == "bool":
        wanted = kept & (values > 0)
    left = wanted[kept]
    scaled = {"scale": [0.5] * len(zeros), "zero_point": zeros, "axis": axis} if dtype.startswith("int") else {}
    data = bits_of("".join("01"[int(each)] for each in kept.reshape(-1)))
    return data, telling(PRUNE) + left.tobytes(), Spec(dtype, shape, **scaled), wanted


CASES = [("int8", [0], 0), ("int8", [-7], 0), ("int8", [3, -4, 5], 0), ("int8", [1, 2, 3, 4], 2), ("int16", [0], 0), ("int32", [0, 0, 0], 0),
         ("int64", [0], 0), ("float32", [0], 0), ("bool", [0], 0)]  # fmt: skip


@pytest.mark.parametrize(("dtype", "zeros", "axis"), CASES)
def test_zeros_are_put_back(dtype: str, zeros: list[int], axis: int) -> None:
    data, told, output, wanted = pruned(dtype, zeros, axis)
    np.testing.assert_array_equal(decoded((data, told, output))[0], wanted)


@pytest.mark.parametrize(("dtype", "zeros", "axis"), CASES[:6])
def test_zeros_are_tflite_micro_s(dtype: str, zeros: list[int], axis: int) -> None:
    data, told, output, wanted = pruned(dtype, zeros, axis)
    np.testing.assert_array_equal(micro((data, told, output))[0].reshape(wanted.shape), wanted)


# Huffman codes -------------------------------------------------------------------------------------------------


def codes_of(values: list[int]) -> dict[int, str]:
    """A Huffman code, by symbol."""
    heap = [(count, number, {symbol: ""}) for number, (symbol, count) in enumerate(sorted(Counter(values).items()))]
    heapq.heapify(heap)
    number = len(heap)
    if number == 1:
        return dict.fromkeys(heap[0][2], "0")
    while len(heap) > 1:
        (a, _, zero), (b, _, one) = heapq.heappop(heap), heapq.heappop(heap)
        merged = {**{s: "0" + code for s, code in zero.items()}, **{s: "1" + code for s, code in one.items()}}
        heapq.heappush(heap, (a + b, number := number + 1, merged))
    return heap[0][2]


def tables_of(codes: dict[int, str], first: int, step: int, wide: bool) -> list[int]:
    """The tables of a code: `first` bits choose from the first one, up to `step` from each other."""
    shift, mask = (27, (1 << 27) - 1) if wide else (11, 0x7FF)
    entries: list[int] = []

    def write(rest: dict[str, int], bits: int) -> None:
        begin = len(entries)
        entries.extend([0] * (1 << bits))
        for index in range(1 << bits):
            chosen = format(index, f"0{bits}b")
            [*whole] = [(code, symbol) for code, symbol in rest.items() if chosen.startswith(code)]
            if whole:
                code, symbol = whole[0]
                entries[begin + index] = 1 << (shift + 4) | len(code) << shift | (symbol & (0xFFFF if wide else 0xFF) & mask)
                continue
            deeper = {code[bits:]: symbol for code, symbol in rest.items() if code.startswith(chosen)}
            if deeper:
                more = min(step, max(map(len, deeper)))
                entries[begin + index] = (more - 1) << shift | (len(entries) - begin - index)
                write(deeper, more)

    write({code: symbol for symbol, code in codes.items()}, first)
    return entries


def huffman(dtype: str, count: int, first: int, step: int, wide: bool, kinds: int = 40) -> tuple[Array, bytes, Spec, Array]:
    values = np.clip(np.round(RANDOM.laplace(0, kinds / 12, count)), -kinds // 2, kinds // 2).astype(dtype)
    codes = codes_of(values.tolist())
    entries = tables_of(codes, first, step, wide)
    told = telling(HUFFMAN, (first - 1) << 4 | wide) + struct.pack(f"<{len(entries)}{'I' if wide else 'H'}", *entries)
    data = bits_of("".join(codes[value] for value in values.tolist()))
    return np.concatenate([data, np.zeros(-data.size % 4, np.uint8)]), told, Spec(dtype, (count,)), values


@pytest.mark.parametrize("count", [1, 7, 3000])
@pytest.mark.parametrize(("first", "step"), [(1, 1), (2, 3), (5, 2), (8, 8)])
@pytest.mark.parametrize(("dtype", "wide"), [("int8", False), ("int8", True), ("int16", True)])
def test_huffman_codes_are_decoded(dtype: str, wide: bool, first: int, step: int, count: int) -> None:
    data, told, output, wanted = huffman(dtype, count, first, step, wide, 300 if dtype == "int16" else 40)
    np.testing.assert_array_equal(decoded((data, told, output))[0], wanted)


def test_many_huffman_codes_are_decoded_in_pieces() -> None:
    data, told, output, wanted = huffman("int8", 100_000, 6, 4, False)
    np.testing.assert_array_equal(decoded((data, told, output))[0], wanted)


@pytest.mark.parametrize(("dtype", "wide"), [("int8", False), ("int8", True), ("int16", True)])
def test_huffman_codes_are_tflite_micro_s(dtype: str, wide: bool) -> None:
    data, told, output, wanted = huffman(dtype, 500, 4, 3, wide)
    np.testing.assert_array_equal(micro((data, told, output))[0].reshape(wanted.shape), wanted)


# All of them ---------------------------------------------------------------------------------------------------


def test_a_node_decodes_several_tensors() -> None:
    parts = [looked_up(4, "int16", (2, 3), None), pruned("int8", [2], 0), huffman("int8", 50, 3, 2, False)]
    for found, (*_, wanted) in zip(decoded(*[each[:3] for each in parts]), parts):
        np.testing.assert_array_equal(found, wanted)


NUMBERS, TABLES, VALUES, _ = looked_up(2, "int8", (8,), None)


@pytest.mark.parametrize(
    ("data", "told", "output", "reason"),
    [
        (NUMBERS, TABLES[:15], VALUES, "must have 16 bytes at least"),
        (NUMBERS, TABLES[:18], VALUES, r"the value \d of 2 in the tables"),
        (NUMBERS[:1], TABLES, VALUES, "1 bytes for 8 numbers of 2 bits"),
        (NUMBERS, telling(LOOK_UP, 0, 4), VALUES, "0 bits"),
        (NUMBERS, telling(LOOK_UP, 2, 4, version=2), VALUES, "version 2 of the format"),
        (NUMBERS, telling(LOOK_UP, 2, 4, own=3), VALUES, "version 3"),
        (NUMBERS, telling(3), VALUES, "in the way 3"),
        (NUMBERS, telling(200), VALUES, "makers' own"),
        (NUMBERS, TABLES, Spec("int8", (2, 2, 2), [1.0, 1.0], [0, 0], axis=1), "dimension 1, neither"),
        (NUMBERS, TABLES, Spec("uint16", (8,)), "INT16"),
        (np.array([255], np.uint8), telling(PRUNE) + b"1234567", VALUES, "7 values"),
        (np.zeros(0, np.uint8), telling(PRUNE) + b"1234567", VALUES, "is empty"),
        (np.zeros(1, np.uint8), telling(PRUNE), Spec("int8", (9,)), "1 bytes for 9 bits"),
        (NUMBERS, telling(PRUNE), Spec("int16", (8,), 1.0, 5), "zero points of 0"),
        (NUMBERS, telling(HUFFMAN), VALUES, "beyond the tables"),
        (NUMBERS, telling(HUFFMAN) + b"\x00\x88\x01\x88", Spec("int8", (17,)), "end after 16 of 17"),
        (NUMBERS, telling(HUFFMAN) + b"\x00\x00\x00\x00", VALUES, "beyond the tables"),  # tables that lead to themselves
        (NUMBERS, telling(HUFFMAN) + b"\x00\x88\x01\x88", Spec("int16", (4,)), "entries of 16 bits"),
        (NUMBERS, telling(HUFFMAN, 1) + b"\x00\x88\x01\x88", Spec("int32", (4,)), "INT8 or INT16"),
    ],
)
def test_damaged_data_is_refused(data: Any, told: bytes, output: Spec, reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        decoded((data, told, output))


def test_values_of_no_bits_end() -> None:
    [found] = decoded((NUMBERS, telling(HUFFMAN) + b"\x05\x80\x05\x80", Spec("int8", (300_000,))))
    assert (found == 5).all()


def test_outputs_of_any_size_are_charged() -> None:
    with pytest.raises(LimitError):
        decoded((NUMBERS, TABLES, Spec("int8", (1 << 30,))), limits=Limits(max_arena_bytes=1 << 20))


def test_mutants_are_decoded_or_refused() -> None:
    pick, outcomes = random.Random(3), Counter[str]()
    parts = [
        looked_up(3, "int8", (4, 20), 0),
        pruned("int8", [3, -4, 5], 0),
        huffman("int8", 90, 3, 2, False),
        huffman("int16", 90, 3, 2, True),
    ]
    for number in range(300):
        data, told, output, _ = parts[number % len(parts)]
        damaged = [bytearray(data.tobytes()), bytearray(told)]
        for _ in range(pick.randint(1, 5)):
            part = pick.choice(damaged)
            part[pick.randrange(min(24, len(part)) if pick.random() < 0.5 else len(part))] = pick.randrange(256)
        cut = len(damaged[0]) if pick.random() < 0.7 else pick.randrange(len(damaged[0]))
        try:
            decoded((np.frombuffer(bytes(damaged[0][:cut]), np.uint8), bytes(damaged[1]), output))
            outcomes["runs"] += 1
        except OpletError:
            outcomes["refused"] += 1
    assert min(outcomes["runs"], outcomes["refused"]) > 30


class TestContract(OpContract):
    model = model((NUMBERS, TABLES, VALUES), fed=True)
    inputs = (NUMBERS,)
    other_inputs = (NUMBERS[::-1].copy(),)
    resized = (np.concatenate([NUMBERS, NUMBERS]),)
    refuses_empty = True
