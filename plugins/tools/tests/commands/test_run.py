"""`oplet run`: values in from files, values out, every error one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oplet import ModelBuilder

X = [-8, 0.5, 2, 2.2, 201]
Y = [-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458]


@pytest.fixture
def atan(examples):
    return examples / "atan" / "atan.tflite"


@pytest.fixture
def x_json(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(X))
    return path


@pytest.fixture
def sum_model(tmp_path):
    """z = x + y for rows of any number."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    tensors = [main.add_tensor(name, "float32", [1, 2], shape_signature=[-1, 2]) for name in ("x", "y", "z")]
    main.add_operator("ADD", tensors[:2], tensors[2:])
    main.set_inputs(0, 1)
    main.set_outputs(2)
    path = tmp_path / "sum.tflite"
    path.write_bytes(builder.to_bytes())
    return path


def test_a_json_file_goes_in_and_a_json_file_comes_out(oplet, atan, x_json, tmp_path):
    ran = oplet("run", atan, "--input", x_json, "--output", tmp_path / "y.json")
    assert ran.code == 0, ran.err
    np.testing.assert_allclose(json.loads((tmp_path / "y.json").read_text())["y"], Y, atol=1e-6)
    assert "1 by oplet-atan-op" in ran.out
    assert "-1.4289" in ran.out


def test_outputs_are_written_as_npy_and_npz(oplet, atan, x_json, tmp_path):
    for name in ("y.npy", "y.npz"):
        assert oplet("run", atan, "-i", f"x={x_json}", "-o", tmp_path / name).code == 0
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), Y, atol=1e-6)
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], Y, atol=1e-6)


@pytest.mark.parametrize("how", ["named", "in order", "one npz", "one json"])
def test_several_inputs(oplet, sum_model, tmp_path, how):
    x, y = np.ones((3, 2), np.float32), np.full((3, 2), 4, np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    (tmp_path / "both.json").write_text(json.dumps({"y": y.tolist(), "x": x.tolist()}))
    inputs = {
        "named": ["-i", f"y={tmp_path / 'y.npy'}", "-i", f"x={tmp_path / 'x.npy'}"],
        "in order": ["-i", tmp_path / "x.npy", "-i", tmp_path / "y.npy"],
        "one npz": ["-i", tmp_path / "both.npz"],
        "one json": ["-i", tmp_path / "both.json"],
    }[how]
    ran = oplet("run", sum_model, *inputs, "-o", tmp_path / "z.npy")
    assert ran.code == 0, ran.err
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), np.full((3, 2), 5))


def test_random_inputs_follow_the_seed(oplet, sum_model):
    first, again, other = (oplet("run", sum_model, "--seed", seed).out for seed in (1, 1, 2))
    assert first == again != other
    assert "random, seed 1" in first


def test_a_picture_is_classified(oplet, digits, examples):
    folder = examples / "digits"
    ran = oplet("run", digits, "-i", folder / "pictures" / "7.png", "--top", "3", "--labels", folder / "labels.txt")
    assert ran.code == 0, ran.err
    best = ran.out.split("probabilities: the highest")[1].splitlines()[3]
    assert best.split()[0] == "seven"
    served = re.findall(r"(\d+) by oplet-(?:builtin|compiled)-ops", ran.out)
    assert sum(map(int, served)) == 9


def test_labels_of_another_number_are_warned_of(oplet, digits, tmp_path):
    (tmp_path / "labels.txt").write_text("none\nzero\n")
    ran = oplet("run", digits, "--labels", tmp_path / "labels.txt")
    assert ran.code == 0
    assert "2 labels for 10 scores" in ran.err


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_plugin_can_be_left_out_before_and_after_the_command(oplet, atan, place):
    switch = ["-p", "no:atan_op"]
    ran = oplet(*switch, "run", atan) if place == "before" else oplet("run", atan, *switch)
    assert ran.code == 1
    assert "Encountered unresolved custom op: Atan." in ran.err
    assert "oplet-atan-op" in ran.err


def _error_cases(folder: Path) -> dict[str, tuple[list[str], str]]:
    (folder / "bad.tflite").write_bytes(b"\0\0\0\0TFL2" + bytes(100))
    (folder / "short.tflite").write_bytes(b"abc")
    (folder / "bad.npy").write_bytes(b"no array")
    (folder / "bad.npz").write_bytes(b"PK no zip")
    (folder / "bad.png").write_bytes(b"no picture")
    (folder / "ragged.json").write_text("[[1, 2], [3]]")
    (folder / "broken.json").write_text("[1, 2")
    (folder / "text.json").write_text('["a", "b", "c", "d", "e"]')
    (folder / "other.json").write_text('{"a": [1], "b": [2]}')
    (folder / "x.json").write_text(json.dumps(X))
    (folder / "x.csv").write_text("1,2")
    np.save(folder / "short.npy", np.zeros(3, np.float32))
    np.save(folder / "complex.npy", np.zeros(5, np.complex64))
    np.save(folder / "objects.npy", np.array([None] * 5), allow_pickle=True)
    Image.new("L", (8, 8)).save(folder / "grey.png")
    return {
        "no such model": (["nope.tflite"], "nope.tflite"),
        "a folder": ([str(folder)], "Is a directory"),
        "wrong magic": (["bad.tflite"], "'TFL2', should be 'TFL3'"),
        "too short": (["short.tflite"], "not a valid Flatbuffer"),
        "no such input file": (["ATAN", "-i", "nope.npy"], "nope.npy: No such file"),
        "no such named file": (["ATAN", "-i", "x=nope.npy"], "nope.npy: No such file"),
        "no such picture": (["ATAN", "-i", "nope.png"], "no picture"),
        "unknown input": (["ATAN", "-i", "z=x.json"], "no input 'z'; it takes 'x'"),
        "unknown entry": (["ATAN", "-i", "other.json"], "'a', which is no input of the model; it takes 'x'"),
        "given twice": (["ATAN", "-i", "x=x.json", "-i", "x=x.json"], "given twice"),
        "too many": (["ATAN", "-i", "x.json", "-i", "x.json"], "no input left for 'x.json'"),
        "wrong shape": (["ATAN", "-i", "short.npy"], "the shape [3], input 'x' takes [5]"),
        "wrong type": (["ATAN", "-i", "complex.npy"], "complex"),
        "text": (["ATAN", "-i", "text.json"], "input 'x' takes float32"),
        "pickles": (["ATAN", "-i", "objects.npy"], "objects.npy"),
        "ragged": (["ATAN", "-i", "ragged.json"], "rows differ in length"),
        "broken json": (["ATAN", "-i", "broken.json"], "broken.json"),
        "broken npy": (["ATAN", "-i", "bad.npy"], "bad.npy"),
        "broken npz": (["ATAN", "-i", "bad.npz"], "bad.npz"),
        "broken picture": (["DIGITS", "-i", "bad.png"], "bad.png"),
        "unknown kind": (["ATAN", "-i", "x.csv"], "x.csv"),
        "picture for a row": (["ATAN", "-i", "grey.png"], "no picture"),
        "unknown output kind": (["ATAN", "-o", "y.txt"], "must end in .npz, .npy or .json"),
        "output nowhere": (["ATAN", "-o", "nowhere/y.npy"], "nowhere/y.npy: No such file"),
        "unknown signature": (["ATAN", "--signature", "nope"], '"nope"'),
        "no labels": (["ATAN", "--labels", "nope.txt"], "nope.txt: No such file"),
    }


CASES = [
    "no such model", "a folder", "wrong magic", "too short", "no such input file", "no such named file", "no such picture",
    "unknown input", "unknown entry", "given twice", "too many", "wrong shape", "wrong type", "text", "pickles", "ragged",
    "broken json", "broken npy", "broken npz", "broken picture", "unknown kind", "picture for a row", "unknown output kind",
    "output nowhere", "unknown signature", "no labels",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_error_is_one_line_and_exit_code_1(oplet, atan, digits, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    arguments, words = _error_cases(tmp_path)[case]
    ran = oplet("run", *({"ATAN": atan, "DIGITS": digits}.get(a, a) for a in arguments))
    assert ran.code == 1
    assert words in ran.err
    assert ran.err.startswith("oplet: ")
    assert ran.err.count("\n") == 1
    assert "unexpected" not in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("arguments", [["--debug", "run", "nope.tflite"], ["run", "nope.tflite", "--debug"]])
def test_debug_lets_the_exception_through(arguments):
    from oplet.errors import ModelError
    from oplet_tools.cli.main import main

    with pytest.raises(ModelError):
        main(arguments)


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["nope"], ["run", "m", "--nope"], ["run", "m", "--top", "0"], ["-p", "atan", "plugins"], ["run", "m", "-p", "no:"]],
)
def test_wrong_usage_is_exit_code_2(oplet, arguments):
    assert oplet(*arguments).code == 2


def test_control_characters_of_a_model_do_not_reach_the_terminal(oplet, tmp_path):
    evil = "\x1b[31mred\u202e\x07\n"
    builder = ModelBuilder(evil)
    main = builder.add_subgraph(evil)
    main.add_tensor(evil, "float32", [2])
    main.add_tensor(f"{evil}2", "float32", [2])
    main.add_operator(evil, [0], [1])
    main.set_inputs(0)
    main.set_outputs(1)
    builder.add_signature(evil, {evil: 0}, {evil: 1})
    builder.add_metadata(evil, evil.encode())
    (tmp_path / "evil.tflite").write_bytes(builder.to_bytes())
    for arguments in (["inspect"], ["inspect", "--json"], ["run"]):
        ran = oplet(*arguments, tmp_path / "evil.tflite")
        assert "red" in ran.out + ran.err
        for character in "\x1b\x07\u202e":
            assert character not in ran.out + ran.err


@pytest.mark.parametrize("delegate", ["example", "oplet-example-delegate:example", "example:min_nodes=1,max_partitions=3"])
def test_a_delegate_claims_nodes(oplet, examples, tmp_path, delegate):
    model, with_it, without = examples / "digits" / "digits_float32.tflite", tmp_path / "with.npy", tmp_path / "without.npy"
    plain, ran = oplet("run", model, "-o", without), oplet("run", model, "--delegate", delegate, "-o", with_it)
    assert ran.code == 0, ran.err
    assert "the delegate example" in ran.out
    assert "example" not in plain.out
    np.testing.assert_allclose(np.load(with_it), np.load(without), rtol=1e-4)


@pytest.mark.parametrize(
    ("delegate", "message"),
    [
        ("nobody", "no installed package brings a delegate of that name"),
        ("example:min_nodes=many", "refuses the options {'min_nodes': 'many'}"),
        ("example:min_nodes=1,wrong", "'wrong' is no option"),
        ("min_nodes=1", "is not of the form NAME[:key=value,...]"),
    ],
)
def test_a_delegate_that_is_not_there_or_refuses_its_options_is_named(oplet, examples, delegate, message):
    ran = oplet("run", examples / "digits" / "digits_float32.tflite", "--delegate", delegate)
    assert ran.code == 1
    assert message in ran.err


def test_an_input_without_its_option_is_told_where_inputs_go(oplet):
    assert (
        "unexpected extra argument(s) (picture.png): inputs are given by --input." in oplet("run", "m.tflite", "picture.png").err
    )
    ran = oplet("doctor", "m.tflite", "more")
    assert "unexpected extra argument(s) (more)." in ran.err
    assert ran.code == 2
