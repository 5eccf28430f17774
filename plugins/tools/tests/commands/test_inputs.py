"""Values for inputs: types, shapes and pictures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from oplet.errors import TensorError
from oplet.schema.options import AddOptions
from oplet_testing import Graph, Op, Spec, graph_model
from oplet_tools.running.inputs import load_input
from oplet_tools.running.outputs import save_outputs, top_scores
from oplet_tools.running.values.conversion import convert_input
from oplet_tools.running.values.quantization import dequantize
from oplet_tools.tuning.random_inputs import random_input

#: Options of a benchmark that measures once and does not warm up.
QUICK = ("--num-runs", 1, "--min-secs", 0, "--warmup-min-secs", 0)


def details(shape, dtype=np.float32, quantization=(0.0, 0), signature=None):
    shape = np.array(shape, np.int32)
    return {
        "name": "x",
        "index": 0,
        "shape": shape,
        "shape_signature": shape if signature is None else np.array(signature, np.int32),
        "dtype": dtype,
        "quantization": quantization,
    }


@pytest.mark.parametrize(
    ("value", "dtype"),
    [([1, 300], np.int8), ([0.5, 1.0], np.int32), ([float("nan"), 1], np.int32), (["a", "b"], np.float32), ([1, 2], np.bytes_)],
)
def test_values_that_the_type_cannot_hold_are_refused(value, dtype):
    with pytest.raises(TensorError, match="input 'x'"):
        convert_input(value, details([2], dtype), "x", "file")


def test_values_that_the_type_can_hold_are_taken():
    assert convert_input([1.0, 2.0], details([2], np.int64), "x", "f").dtype == np.int64
    assert convert_input([True, False], details([2], np.float32), "x", "f").tolist() == [1, 0]
    assert convert_input(["ä", b"b"], details([2], np.bytes_), "x", "f").tolist() == ["ä".encode(), b"b"]


@pytest.mark.parametrize(
    ("shape", "to", "signature", "result"),
    [
        ((2, 3), (2, 3), None, (2, 3)),
        ((2, 3), (1, 2, 3, 1), None, (1, 2, 3, 1)),
        ((1, 2, 3), (2, 3), None, (2, 3)),
        ((), (1,), None, (1,)),
        ((7, 3), (1, 3), (-1, 3), (7, 3)),
        ((3,), (1, 3), (-1, 3), (1, 3)),
        ((5, 4), (1, 1, 4), (-1, -1, 4), (1, 5, 4)),
    ],
)
def test_shapes_that_agree_but_for_ones_fit(shape, to, signature, result):
    assert convert_input(np.zeros(shape, np.float32), details(to, signature=signature), "x", "f").shape == result


@pytest.mark.parametrize(("shape", "to", "signature"), [((3, 2), (2, 3), None), ((6,), (2, 3), None), ((7, 4), (1, 3), (-1, 3))])
def test_other_shapes_do_not_fit(shape, to, signature):
    with pytest.raises(TensorError, match="has the shape"):
        convert_input(np.zeros(shape, np.float32), details(to, signature=signature), "x", "f")


@pytest.fixture
def gradient(tmp_path):
    """A picture of 4 x 2 with red rising to the right."""
    pixels = np.zeros((2, 4, 3), np.uint8)
    pixels[..., 0] = [0, 85, 170, 255]
    Image.fromarray(pixels).save(tmp_path / "g.png")
    return tmp_path / "g.png"


def test_a_picture_takes_the_layout_of_the_input(gradient):
    rgb = load_input(gradient, details([1, 2, 4, 3]))
    assert rgb.dtype == np.float32
    np.testing.assert_allclose(rgb[0, 0, :, 0], [0, 1 / 3, 2 / 3, 1], rtol=1e-6)
    np.testing.assert_array_equal(load_input(gradient, details([1, 3, 2, 4])), rgb.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(load_input(gradient, details([2, 4, 3])), rgb[0])
    assert load_input(gradient, details([2, 4])).shape == (2, 4)
    assert load_input(gradient, details([1, 1, 1, 3], signature=[-1, -1, -1, 3])).shape == (1, 2, 4, 3)
    assert load_input(gradient, details([1, 6, 5, 1])).shape == (1, 6, 5, 1)


def test_a_picture_shrinks_by_area(gradient):
    small = load_input(gradient, details([1, 1, 2, 3], np.uint8))
    np.testing.assert_array_equal(small[0, 0, :, 0], [43, 213])


def test_pixels_take_the_range_of_8_bit_inputs(gradient):
    pixels = [0, 85, 170, 255]
    unsigned = load_input(gradient, details([1, 2, 4, 3], np.uint8, (1 / 128, 128)))
    signed = load_input(gradient, details([1, 2, 4, 3], np.int8, (1 / 255, -128)))
    np.testing.assert_array_equal(unsigned[0, 0, :, 0], pixels)
    np.testing.assert_array_equal(signed[0, 0, :, 0], np.array(pixels) - 128)


def test_scale_and_offset_say_what_a_pixel_means(gradient):
    as_float = load_input(gradient, details([1, 2, 4, 3]), scale=2 / 255, offset=-1)
    np.testing.assert_allclose(as_float[0, 0, :, 0], [-1, -1 / 3, 1 / 3, 1], rtol=1e-6)
    as_int16 = load_input(gradient, details([1, 2, 4, 3], np.int16, (0.5, 0)), scale=1)
    np.testing.assert_array_equal(as_int16[0, 0, :, 0], [0, 170, 340, 510])
    with pytest.raises(TensorError, match="scale and an offset"):
        load_input(gradient, details([1, 2, 4, 3], np.int16, (0.5, 0)))


def test_16_bit_grey_keeps_its_range(tmp_path):
    Image.fromarray(np.array([[0, 65535], [257, 32896]], np.uint16)).save(tmp_path / "g.png")
    value = load_input(tmp_path / "g.png", details([1, 2, 2, 1], np.uint8))
    np.testing.assert_array_equal(value[0, :, :, 0], [[0, 255], [1, 128]])


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.int8, np.uint8, np.int16, np.int64, np.bool_, np.complex64, np.bytes_]
)
def test_there_is_a_random_value_for_every_type(dtype):
    value = random_input(details([2, 3], dtype, (0.5, 1) if np.dtype(dtype).kind in "iu" else (0.0, 0)), np.random.default_rng(0))
    assert value.shape == (2, 3)
    assert value.dtype == (object if dtype is np.bytes_ else dtype)


def test_the_highest_scores_are_real_numbers_in_order():
    output = details([1, 4], np.uint8, (0.5, 2))
    scores = top_scores(np.array([[4, 8, 2, 8]], np.uint8), output, 3, ["a", "b"])
    assert [(s.index, s.label, s.value) for s in scores] == [(1, "b", 3.0), (3, "", 3.0), (0, "a", 1.0)]
    np.testing.assert_array_equal(dequantize(np.array([0], np.uint8), output), [-1.0])


def test_outputs_of_odd_names_and_types_are_written(tmp_path):
    outputs = {"file": np.arange(3), "a/b:0": np.array([b"x", b"yz"], object), "c": np.array([1 + 2j], np.complex64)}
    save_outputs(outputs, tmp_path / "o.npz")
    with np.load(tmp_path / "o.npz") as arrays:
        assert arrays["file"].tolist() == [0, 1, 2]
        assert arrays["a/b:0"].tolist() == [b"x", b"yz"]
    save_outputs(outputs, tmp_path / "o.json")
    assert (tmp_path / "o.json").read_text() == '{"file": [0, 1, 2], "a/b:0": ["x", "yz"], "c": [[1.0, 2.0]]}\n'


@pytest.fixture
def sum_of_two(tmp_path):
    """A model with the inputs a and b, and a folder with a file for each."""
    model = graph_model(Graph(dict.fromkeys("abc", Spec("float32", [2])), "a b", "c", [Op("ADD", "a b", "c", AddOptions())]))
    (tmp_path / "sum.tflite").write_bytes(model)
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.ones(2, np.float32))
    return tmp_path


@pytest.mark.parametrize("quiet", [(), ("-q",)])
@pytest.mark.parametrize(
    "command",
    [("run",), ("benchmark", *QUICK), ("compare", "--with", "run.npz"), ("tune", "--max-secs", 0.01)],
)
def test_an_input_that_was_forgotten_is_named_wherever_others_are_given(oplet, sum_of_two, monkeypatch, command, quiet):
    monkeypatch.chdir(sum_of_two)
    assert oplet("run", "sum.tflite", "-i", "a=a.npy", "-i", "b=b.npy", "-o", "run.npz").err == ""
    name, *options = command
    forgotten = oplet(name, "sum.tflite", "-i", "b=b.npy", *options, *quiet)
    assert "warning: input 'a': no value was given for it, so that its values are random" in forgotten.err
    assert "'b'" not in forgotten.err
    assert "random" not in oplet(name, "sum.tflite", "-i", "a=a.npy", "-i", "b=b.npy", *options, *quiet).err
    assert "random" not in oplet(name, "sum.tflite", *options, *quiet).err


def test_a_forgotten_input_is_in_json_too(oplet, sum_of_two):
    ran = oplet("run", sum_of_two / "sum.tflite", "-i", f"a={sum_of_two / 'a.npy'}", "--json")
    [_, forgotten] = json.loads(ran.out)["inputs"]
    assert [notice["kind"] for notice in forgotten["notices"]] == ["random"]


@pytest.mark.parametrize(("key", "said"), [("image", False), ("arr_0", False), ("foo", True)])
def test_the_only_value_of_a_file_is_taken_under_another_name_and_that_is_said(oplet, digits, tmp_path, key, said):
    np.savez(tmp_path / "some.npz", **{key: np.zeros((1, 8, 8, 1), np.float32)})
    ran = oplet("run", digits, "-i", tmp_path / "some.npz")
    assert ran.code == 0, ran.err
    assert ("has no value of that name; its only one, 'foo', is taken" in ran.err) is said
    named = oplet("run", digits, "-i", f"image={tmp_path / 'some.npz'}")
    assert (named.code, named.err) == (0, "")
