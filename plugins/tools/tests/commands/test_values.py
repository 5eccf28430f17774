"""Real values in and out of the commands, the tensors' own on request: each value is kept, or refused with a word."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.errors import TensorError
from oplet_testing import Spec, invoke, litert_interpreter, one_op_model, run_op
from oplet_tools.running.formatting import describe_value, preview
from oplet_tools.running.inputs import load_input
from oplet_tools.running.outputs import save_outputs
from oplet_tools.running.run import Value
from oplet_tools.running.values.conversion import convert_input
from oplet_tools.running.values.notices import Notice
from oplet_tools.running.values.quantization import dequantize, quantization_of
from oplet_tools.tuning.random_inputs import random_input

INTEGERS = [np.int8, np.uint8, np.int16]


def details(shape: Any, dtype: Any, scale: Any = None, zero_point: Any = 0, axis: int = 0, **more: Any) -> dict[str, Any]:
    """A tensor's details; of the quantization what the interpreter says of it."""
    scales = np.atleast_1d(np.asarray([] if scale is None else scale, np.float32))
    zero_points = np.broadcast_to(np.asarray(zero_point, np.int32), scales.shape)
    pair = (float(scales[0]), int(zero_points[0])) if len(scales) == 1 else (0.0, 0)
    parameters = {"scales": scales, "zero_points": zero_points, "quantized_dimension": axis, "block_size": more.pop("block", 0)}
    shapes = {"shape": np.array(shape, np.int32), "shape_signature": np.array(shape, np.int32)}
    return {
        "name": "x",
        "index": 0,
        "dtype": dtype,
        "quantization": pair,
        "quantization_parameters": parameters,
        **shapes,
        **more,
    }


def fitted(value: Any, to: dict[str, Any], **options: Any) -> tuple[Any, list[Notice]]:
    told: list[Notice] = []
    return convert_input(value, to, "x", "file", notify=told.append, **options), told


# The arithmetic ----------------------------------------------------------------------------------------------------------


def _near_the_halves(dtype: Any, scale: float, zero_point: int) -> Any:
    """Real values at, right below and right above every half step of a type, and far beyond its range."""
    limits = np.iinfo(dtype)
    steps = np.arange(limits.min - 3, limits.max + 3, 1 if limits.bits == 8 else 37) - zero_point
    halves = ((steps + 0.5) * scale).astype(np.float32)
    near = [halves, np.nextafter(halves, np.float32(np.inf)), np.nextafter(halves, np.float32(-np.inf))]
    return np.concatenate([*near, np.array([0, -0.0, 1e8 * scale, -1e8 * scale, 0.49999997 * scale], np.float32)])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(("scale", "zero_point"), [(0.5, 3), (1 / 255, 0), (0.0078431377, 5), (3.1e-5, 0), (7.8e-9, 0)])
def test_real_values_are_rounded_and_clamped_as_litert_s_quantize_does_it(dtype: Any, scale: float, zero_point: int) -> None:
    values = _near_the_halves(dtype, scale, zero_point)
    model = one_op_model("QUANTIZE", [Spec("float32", values.shape)], [Spec(dtype, values.shape, scale, zero_point)])
    [wanted] = run_op(model, values, interpreter=litert_interpreter("BUILTIN_REF"))
    to = details(values.shape, dtype, scale, zero_point)
    for given in (values, values.astype(np.float64), values.tolist()):
        got, _ = fitted(given, to)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("axis", "shape"), [(0, (3, 2)), (1, (2, 3)), (2, (1, 2, 3))])
def test_a_scale_for_each_slice_is_that_slice_s(axis: int, shape: tuple[int, ...]) -> None:
    model = one_op_model("QUANTIZE", [Spec("float32", shape)], [Spec("int8", shape, [0.5, 0.25, 2], [0, 1, -2], axis)])
    interpreter = Interpreter(model_content=model)
    values = np.linspace(-9, 9, 6, dtype=np.float32).reshape(shape)
    [wanted] = invoke(interpreter, values)
    to = interpreter.get_output_details()[0]
    got, _ = fitted(values, to)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(fitted(dequantize(wanted, to), to)[0], wanted)
    assert np.abs(dequantize(wanted, to) - values).max() <= 1
    assert random_input(to, np.random.default_rng(0)).min() < 0  # the whole range, as of any quantized tensor


@pytest.mark.parametrize("dtype", INTEGERS)
def test_real_values_are_what_litert_s_dequantize_gives(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    integers = np.arange(limits.min, limits.max + 1).astype(dtype)
    zero_point = 0 if dtype is np.int16 else 7
    model = one_op_model(
        "DEQUANTIZE", [Spec(dtype, integers.shape, 0.1234567, zero_point)], [Spec("float32", integers.shape)], version=2
    )
    [wanted] = run_op(model, integers, interpreter=litert_interpreter("BUILTIN_REF"))
    real = dequantize(integers, details(integers.shape, dtype, 0.1234567, zero_point))
    assert real.dtype == np.float32
    np.testing.assert_array_equal(real, wanted)


SCALES = [1.0, 0.1, 1 / 255, 0.0078431377, 7.8e-9, 3.6e-43, 1.2e-38, 1e-45, 3e5, 1e38, 3.4e38]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".json"])
@pytest.mark.parametrize("raw", [False, True], ids=["real", "raw"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32])
def test_what_is_written_leads_back_to_the_same_integers(tmp_path: Path, dtype: Any, raw: bool, suffix: str) -> None:
    limits = np.iinfo(dtype)
    some = np.random.default_rng(1).integers(limits.min, limits.max, 300, dtype, endpoint=True)
    integers = np.concatenate([np.arange(-128, 128).astype(dtype), some, np.array([limits.min, limits.max], dtype)])
    for scale in SCALES:
        for zero_point in (0, int(limits.min) if limits.bits < 32 else 0, 100):
            to = details(integers.shape, dtype, scale, zero_point)
            file = tmp_path / f"y{suffix}"
            save_outputs({"y": integers if raw else dequantize(integers, to)}, file)
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # nothing is clamped on the way
                back = load_input(file, to, raw=raw)
            assert back.dtype == dtype
            np.testing.assert_array_equal(back, integers, f"scale {scale}, zero point {zero_point}")


def test_integers_of_64_bits_are_real_while_float64_has_them_all() -> None:
    to = details([2], np.int64, 0.1)
    small = np.array([-(2**51), 2**51 - 1])
    np.testing.assert_array_equal(fitted(dequantize(small, to), to)[0], small)
    with pytest.raises(TensorError, match="give --raw"):
        dequantize(np.array([0, 2**60]), to)


# What a quantized input takes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [[0, 1, -2], [0.0, 1.0, -2.0], [0, 1.0, -2], np.array([0, 1, -2], np.float32), np.array([0, 1, -2.0])]
)
def test_a_number_means_the_same_however_it_is_written(value: Any) -> None:
    got, _ = fitted(value, details([3], np.int8, 0.5, -10))
    assert got.tolist() == [-10, -8, -14]


def test_whole_numbers_of_json_are_real_and_that_is_told() -> None:
    to = details([2], np.int8, 0.5, -10)
    _, told = fitted([0, 1], to)
    assert [notice.kind for notice in told] == ["whole numbers"]
    assert "--raw" in told[0].text
    assert fitted([0, 1.0], to)[1] == []
    got, told = fitted([0, 1], to, raw=True)
    assert got.tolist() == [0, 1]
    assert told == []


@pytest.mark.parametrize("given", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_arrays_of_integers_for_a_quantized_input_need_raw(given: Any) -> None:
    value, to = np.array([1, 100], given), details([2], np.int8, 0.5, -10)
    with pytest.raises(
        TensorError, match=r"holds .*int.* integers, and input 'x' is quantized \(int8, scale 0.5, zero point -10\): give --raw"
    ):
        fitted(value, to)
    assert fitted(value, to, raw=True)[0].tolist() == [1, 100]


@pytest.mark.parametrize("value", [np.array([[0, 1], [np.nan, 2]]), [[0, 1], [float("nan"), 2]]])
def test_nan_has_no_integer(value: Any) -> None:
    with pytest.raises(TensorError, match=r"'file' holds nan at \[1, 0\], and input 'x' is quantized"):
        fitted(value, details([2, 2], np.int8, 0.5))


def test_values_beyond_the_range_are_clamped_and_counted() -> None:
    got, told = fitted(np.array([[-65, 63.5], [np.inf, 63.8], [-np.inf, 0]]), details([3, 2], np.int8, 0.5))
    assert got.tolist() == [[-128, 127], [127, 127], [-128, 0]]
    [notice] = told
    assert notice.facts == {"values": 6, "clamped": 4, "first": [0, 0]}
    assert "4 of 6 values of 'file' were clamped to its range of -64 to 63.5, the first at [0, 0]: -65" in str(notice)


def test_clamped_values_of_many_blocks_are_counted_together() -> None:
    value = np.zeros((3, 1 << 20), np.float32)
    value[1:, 5] = 1000
    _, [notice] = fitted(value, details(value.shape, np.int8, 0.5))
    assert notice.facts == {"values": 3 << 20, "clamped": 2, "first": [1, 5]}


def test_without_anybody_to_tell_a_warning_is_raised() -> None:
    with pytest.warns(UserWarning, match="1 of 1 values of 'file' were clamped"):
        convert_input([1000.0], details([1], np.int8, 0.5), "x", "file")


@pytest.mark.parametrize(
    ("to", "words"),
    [
        (details([2], np.int8, 0.5, block=2), "quantized by blocks of 2"),
        (details([2], np.int8, [0.5, 0.0]), "the scale 0"),
        (details([2], np.int8, [0.5, 0.5, 0.5]), "3 scales along dimension 0 of its shape"),
        (details([2], np.int8, [0.5, 0.5], axis=3), "2 scales along dimension 3"),
    ],
)
def test_a_quantization_that_cannot_be_applied_needs_raw(to: dict[str, Any], words: str) -> None:
    for use in (lambda: fitted([0.5, 1], to), lambda: dequantize(np.array([1, 2], np.int8), to)):
        with pytest.raises(TensorError, match=rf"'x' have no real numbers.*{words}.*give --raw"):
            use()
    assert fitted(np.array([1, 2], np.int8), to, raw=True)[0].tolist() == [1, 2]


@pytest.mark.parametrize("to", [details([2], np.int8, 0.0, 3), details([2], np.int8), details([2], np.int8, [0.0, 0.0])])
def test_integers_without_a_scale_are_their_own_values(to: dict[str, Any]) -> None:
    assert quantization_of(to) is None
    for value in (np.array([1, 2], np.int8), np.array([1, 2]), [1, 2], [1.0, 2]):
        got, told = fitted(value, to)
        assert got.tolist() == [1, 2]
        assert told == []
    assert dequantize(np.array([1, 2], np.int8), to).dtype == np.int8


def test_integers_of_4_bits_have_16_values() -> None:
    to = details([2], np.int8, 0.5, limits=(-8, 7))
    got, [notice] = fitted([9.5, -2], to)
    assert got.tolist() == [7, -4]
    assert notice.facts["clamped"] == 1
    with pytest.raises(TensorError, match="8 at"):
        fitted([8, 1], to, raw=True)
    with pytest.raises(TensorError, match="8 at"):
        fitted(np.array([8, 1]), to, raw=True)
    assert random_input(details([500], np.int8, 0.5, limits=(-8, 7)), np.random.default_rng(0)).max() == 7


def test_an_output_whose_quantization_cannot_be_applied_is_shown_raw_and_not_written() -> None:
    value = Value("x", np.array([1, 2], np.int8), details([2], np.int8, 0.5, block=2))
    assert preview(value).startswith("1, 2: raw, The values of 'x' have no real numbers")
    assert describe_value(value)[1] == "int8 (scale 0.5, zero point 0)"
    with pytest.raises(TensorError, match="give --raw"):
        value.displayed  # noqa: B018
    assert replace(value, raw=True).displayed.tolist() == [1, 2]
    assert preview(replace(value, raw=True)) == "1, 2"


def test_the_first_values_of_slices_have_their_own_scales() -> None:
    value = Value("x", np.array([[2, 2], [4, 4]], np.int8), details([2, 2], np.int8, [0.5, 0.25], axis=1))
    assert preview(value) == "1, 0.5, 2, 1"
    assert describe_value(value)[1] == "int8 (2 scales along dimension 1)"


# Every other type --------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Any, Any, str]] = [
    ([1, None], np.float32, r"null at \[1\]"),
    ([[1, 2], ["a", 3]], np.float32, r"text at \[1, 0\]"),
    ([1, {"a": 2}], np.float32, r"an object at \[1\]"),
    ([[1, 2], [3]], np.float32, "rows differ in length"),
    ([[1, 2], 3], np.float32, "rows differ in length"),
    ([True, 1], np.float32, r"mixes true and false with numbers, at \[1\]"),
    ([10**400, 1], np.float64, r"\[0\] is beyond float64"),
    ([1, 1e39], np.float32, r"1e\+39 at \[1\], which is beyond float32"),
    ([1, 7e4], np.float16, r"at \[1\], which is beyond float16"),
    (np.array([1, 1e39]), np.float32, r"at \[1\], which is beyond float32"),
    (np.array([1, 1e39 + 0j]), np.complex64, r"at \[1\], which is beyond complex64"),
    (np.array([1j, 1]), np.float32, "complex"),
    ([1, 128], np.int8, r"128 at \[1\] is not in -128 to 127"),
    ([-1, 1], np.uint8, r"-1 at \[0\] is not in 0 to 255"),
    ([2**63, 1], np.int64, r"at \[0\] is not in"),
    ([1, 2**64], np.uint64, r"at \[1\] is not in"),
    ([1, 2.5], np.int64, r"2.5 at \[1\] is no integer"),
    ([1, float("nan")], np.int64, "nan"),
    ([1, float("inf")], np.int64, "inf"),
    (np.array([1, 2.0**63]), np.int64, r"at \[1\]"),
    (np.array([2**63, 1], np.uint64), np.int64, r"at \[0\]"),
    (np.array([-1, 1]), np.uint64, r"at \[0\]"),
    (np.array([1, 2]), np.bool_, r"2 at \[1\]"),
    ([0.5, 1], np.bool_, r"0.5 at \[0\]"),
    ([1, 2], np.bytes_, "takes text"),
    (["a", None], np.bytes_, "takes text"),
    (np.array(["a", "b"]), np.float32, "holds <U1"),
]


@pytest.mark.parametrize(("value", "dtype", "words"), REFUSED)
def test_what_a_type_cannot_hold_is_refused_with_its_place(value: Any, dtype: Any, words: str) -> None:
    with pytest.raises(TensorError, match=words) as raised:
        fitted(value, details([2], dtype))
    assert "'file'" in str(raised.value)
    assert "input 'x'" in str(raised.value)


TAKEN: list[tuple[Any, Any, list[Any]]] = [
    ([2**53 + 1, 1], np.int64, [2**53 + 1, 1]),
    ([2**53 + 1, 1.0], np.int64, [2**53 + 1, 1]),
    ([-(2**63), 2**63 - 1], np.int64, [-(2**63), 2**63 - 1]),
    ([2**64 - 1, 1], np.uint64, [2**64 - 1, 1]),
    ([True, False], np.float32, [1, 0]),
    ([True, False], np.int32, [1, 0]),
    ([1, 0], np.bool_, [True, False]),
    ([1.0, 0.0], np.bool_, [True, False]),
    (np.array([2.0, 3.0]), np.int32, [2, 3]),
    (np.array([2, 3], ">i4"), np.int32, [2, 3]),
    (np.array([2, 3], ">f8"), np.float32, [2, 3]),
    ([0.1, 2**60], np.float64, [0.1, float(2**60)]),
    ([0.5, 1e-3], np.float16, [0.5, float(np.float16(1e-3))]),
    ([float("inf"), 1], np.float32, [float("inf"), 1]),
    ([1, 2], np.complex64, [1, 2]),
    ([[1, 2], [3, float("inf")]], np.complex64, [1 + 2j, complex(3, float("inf"))]),
]


@pytest.mark.parametrize(("value", "dtype", "wanted"), TAKEN)
def test_what_a_type_can_hold_is_kept_digit_by_digit(value: Any, dtype: Any, wanted: list[Any]) -> None:
    got, told = fitted(value, details([2], dtype))
    assert got.dtype == dtype
    assert got.tolist() == wanted
    assert told == []


def test_bfloat16_takes_what_it_gives(tmp_path: Path) -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    values = np.array([0.1, -0.0, 3e38, np.inf], np.float32).astype(bfloat16)
    to = details([4], bfloat16.type)
    for suffix in (".npy", ".json"):
        save_outputs({"x": values}, tmp_path / f"x{suffix}")
        back = load_input(tmp_path / f"x{suffix}", to)
        assert back.dtype == bfloat16
        np.testing.assert_array_equal(back.view(np.uint16), values.view(np.uint16))
    with pytest.raises(TensorError, match="beyond bfloat16"):
        fitted(np.array([1, 2, 3, 1e39]), to)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".json"])
@pytest.mark.parametrize(
    "value",
    [
        np.array([-0.0, 0.1, np.inf, -np.inf, 1e-45], np.float32),
        np.array([[-0.0, 0.1]], np.float64),
        np.array([1.5 - 0.0j, complex(-0.0, 2), complex(np.inf, -np.inf)], np.complex64),
        np.array([2**63 - 1, -(2**63)], np.int64),
        np.array([2**64 - 1, 0], np.uint64),
        np.array([True, False]),
        np.array(["ä".encode(), b"", b"\xff\xfe", b"\\xff", b'"'], object),
        np.array([0.1, 65504], np.float16),
    ],
    ids=lambda value: str(value.dtype),
)
def test_values_of_every_type_come_back_as_they_were_written(tmp_path: Path, value: Any, suffix: str) -> None:
    file = tmp_path / f"x{suffix}"
    save_outputs({"x": value}, file)
    back = load_input(file, details(value.shape, np.bytes_ if value.dtype.hasobject else value.dtype.type))
    assert back.tolist() == value.tolist()
    if not value.dtype.hasobject:
        assert back.tobytes() == value.tobytes()


def test_text_that_numpy_would_cut_is_not_written_as_npy(tmp_path: Path) -> None:
    value = np.array([b"a\0"], object)
    for suffix in (".npy", ".npz"):
        with pytest.raises(TensorError, match=r"ends in a NUL; write a \.json"):
            save_outputs({"x": value}, tmp_path / f"x{suffix}")
    save_outputs({"x": value}, tmp_path / "x.json")
    assert load_input(tmp_path / "x.json", details([1], np.bytes_)).tolist() == [b"a\0"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("[1e400]", "1e400 is beyond float64"), ('{"x": [1], "x": [2]}', "same name"), ("[1,]", "damaged"), ("", "damaged")],
)
def test_json_that_could_be_misread_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(TensorError, match=words):
        load_input(tmp_path / "x.json", details([1], np.float32))


def test_json_keeps_the_sign_of_zero_and_the_infinite(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[-0, -0.0, 0, -0e5, Infinity, -10, 1e-05]")
    value = load_input(tmp_path / "x.json", details([7], np.float32))
    assert np.signbit(value).tolist() == [True, True, False, True, False, True, False]
    assert value[4:].tolist() == [float("inf"), -10, float(np.float32(1e-5))]


def test_written_json_is_what_json_reads(tmp_path: Path) -> None:
    save_outputs({"x": np.array([b"\xff"], object), "y": np.array([1 + 2j])}, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text()) == {"x": ["\udcff"], "y": [[1.0, 2.0]]}
