"""The rule of values at the commands' doors: real unless --raw, told on standard error, and nothing but results on standard output."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from PIL import Image
from tests.places import EXAMPLES, ROOT

from oplet import Interpreter, ModelBuilder, TensorType
from oplet_build.standalone.contents import AppContents
from oplet_build.standalone.main import main as app_main
from oplet_testing import Spec, invoke, one_op_model

DIGITS = EXAMPLES / "digits"
PAGE = ROOT / "docs" / "values.md"


@pytest.fixture
def turned(tmp_path: Path) -> Path:
    """A model that gives an int8 vector of 4 back as it is: real = (integer + 10) / 2."""
    spec = Spec("int8", [4], 0.5, -10)
    path = tmp_path / "same.tflite"
    path.write_bytes(one_op_model("TRANSPOSE", [spec, np.array([0], np.int32)], [spec]))
    return path


def _write(path: Path, content: Any) -> Path:
    if path.suffix == ".json":
        path.write_text(json.dumps(content))
    elif path.suffix == ".npz":
        np.savez(path, x=content)
    else:
        np.save(path, content)
    return path


# run ---------------------------------------------------------------------------------------------------------------------


def _raw_answer(picture: np.ndarray) -> np.ndarray:
    return invoke(Interpreter(model_path=DIGITS / "digits_int8.tflite"), picture)[0]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".json"])
def test_outputs_are_written_as_the_real_values_that_the_table_shows(oplet, tmp_path: Path, suffix: str) -> None:
    integers = np.random.default_rng(0).integers(-128, 127, (1, 8, 8, 1), np.int8, endpoint=True)
    given = _write(tmp_path / "x.npy", integers)
    details = Interpreter(model_path=DIGITS / "digits_int8.tflite").get_output_details()[0]
    scale, zero_point = details["quantization"]
    raw = _raw_answer(integers)
    file = tmp_path / f"y{suffix}"

    def written() -> np.ndarray:
        content = json.loads(file.read_text()) if suffix == ".json" else np.load(file)
        return np.asarray(content if suffix == ".npy" else next(iter(dict(content).values())))

    model = DIGITS / "digits_int8.tflite"
    assert oplet("run", model, "--raw", "-i", given, "-o", file).code == 0
    np.testing.assert_array_equal(written(), raw)
    assert written().dtype == (np.int64 if suffix == ".json" else np.int8)

    real_input = np.asarray((integers.astype(np.float64) + 128) / 255, np.float32)
    ran = oplet("run", model, "-i", _write(tmp_path / "x.json", real_input.tolist()), "-o", file, "--json")
    assert ran.code == 0, ran.err
    wanted = (raw.astype(np.float64) - zero_point) * scale
    np.testing.assert_array_equal(written(), wanted.astype(np.float32))
    shown = oplet("run", model, "-i", tmp_path / "x.json").out.split("\noutputs\n")[1]
    assert f"{wanted.ravel()[0]:.6g}, {wanted.ravel()[1]:.6g}" in shown


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".json"])
@pytest.mark.parametrize("raw", [False, True], ids=["real", "raw"])
def test_outputs_can_be_given_again_as_inputs(oplet, turned: Path, tmp_path: Path, suffix: str, raw: bool) -> None:
    switch = ["--raw"] if raw else []
    first, second = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
    assert oplet("run", turned, "--seed", 3, "-o", first, *switch).code == 0
    ran = oplet("run", turned, "-i", first, "-o", second, *switch)
    assert ran.code == 0, ran.err
    assert "warning" not in ran.err
    assert (np.load(first)["output_0"] if suffix == ".npz" else first.read_bytes()) is not None
    if suffix == ".npz":  # whose members carry the time
        np.testing.assert_array_equal(np.load(first)["output_0"], np.load(second)["output_0"])
    else:
        assert first.read_bytes() == second.read_bytes()


def test_a_zero_is_a_zero_however_it_is_written(oplet, turned: Path, tmp_path: Path) -> None:
    for zero in (0, 0.0):
        ran = oplet("run", turned, "-i", _write(tmp_path / "x.json", [zero] * 4), "--json")
        assert json.loads(ran.out)["outputs"][0]["values"] == [0, 0, 0, 0]
        assert ("whole numbers of" in ran.err) == isinstance(zero, int)
    ran = oplet("run", turned, "--raw", "-i", _write(tmp_path / "x.json", [0] * 4), "--json")
    assert json.loads(ran.out)["outputs"][0]["values"] == [0, 0, 0, 0]
    assert json.loads(ran.out)["raw"] is True
    assert ran.err == ""
    assert "5, 5, 5, 5" in oplet("run", turned, "-i", _write(tmp_path / "x.npy", np.full(4, 5.0))).out
    assert "0, 0, 0, 0" in oplet("run", turned, "--raw", "-i", tmp_path / "x.json").out.split("\noutputs\n")[1]


def test_the_table_shows_integers_with_raw(oplet, turned: Path, tmp_path: Path) -> None:
    given = _write(tmp_path / "x.npy", np.array([3, -4, 5, 6], np.int8))
    ran = oplet("run", turned, "--raw", "-i", given, "--top", "1")
    assert "3, -4, 5, 6" in ran.out.split("\noutputs\n")[1]
    assert ran.out.splitlines()[-1].split() == ["6", "3"]


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_file_of_integers_for_a_quantized_input_is_refused_without_raw(
    oplet, turned: Path, tmp_path: Path, suffix: str
) -> None:
    given = _write(tmp_path / f"x{suffix}", np.array([3, -4, 5, 6], np.int8))
    for command in (["run"], ["compare", "--delegate", "example"], ["benchmark", "--num-runs", "1"], ["tune"]):
        ran = oplet(command[0], turned, "-i", given, *command[1:])
        assert ran.code == 1, command
        assert "give --raw if they are its own integers, or floats" in ran.err
        assert ran.out == ""
    assert oplet("run", turned, "-i", given, "--raw").code == 0


def test_nan_and_what_is_beyond_the_range(oplet, turned: Path, tmp_path: Path) -> None:
    ran = oplet("run", turned, "-i", _write(tmp_path / "x.npy", np.array([0, 1, np.nan, 2])))
    assert ran.code == 1
    assert "holds nan at [2]" in ran.err
    given = _write(tmp_path / "x.npy", np.array([0, 1e6, -1e6, 2]))
    ran = oplet("run", turned, "-i", given, "--json")
    assert "oplet: warning: input 'input_0': 2 of 4 values of" in ran.err
    told = json.loads(ran.out)
    assert told["inputs"][0]["notices"][0]["clamped"] == 2
    assert told["outputs"][0]["values"] == [0, 68.5, -59, 2]
    ran = oplet("run", turned, "-i", given, "--quiet")
    assert (ran.code, ran.err) == (0, "")


def test_an_input_of_4_bits_is_clamped_to_its_16_values(oplet, tmp_path: Path) -> None:
    spec = Spec(TensorType.INT4, [4], 0.5, 0)
    model = tmp_path / "four.tflite"
    model.write_bytes(one_op_model("TRANSPOSE", [spec, np.array([0], np.int32)], [spec], version=4))
    ran = oplet("run", model, "-i", _write(tmp_path / "x.npy", np.array([0.5, 100, -100, 3.5])), "--json")
    assert json.loads(ran.out)["outputs"][0]["values"] == [0.5, 3.5, -4, 3.5]
    assert "2 of 4 values" in ran.err
    assert "its range of -4 to 3.5" in ran.err
    ran = oplet("run", model, "--raw", "-i", _write(tmp_path / "x.npy", np.array([1, 100, 0, 0])))
    assert ran.code == 1
    assert "100 at [1], which is no int8 of -8 to 7" in ran.err
    values = json.loads(oplet("run", model, "--raw", "--json").out)["outputs"][0]["values"]
    assert all(-8 <= value <= 7 for value in values)


def test_json_has_the_whole_run_and_nothing_else_stands_on_standard_output(oplet, tmp_path: Path) -> None:
    picture, labels = DIGITS / "pictures" / "7.png", DIGITS / "labels.txt"
    ran = oplet("run", DIGITS / "digits_int8.tflite", "-i", picture, "--labels", labels, "--top", "1", "--json")
    told = json.loads(ran.out)
    [given], [output] = told["inputs"], told["outputs"]
    assert given["source"] == str(picture)
    assert given["quantization"]["zero_points"] == [-128]
    [notice] = given["notices"]
    assert notice["kind"] == "picture"
    assert notice["resized"] == [8, 8]
    assert notice["size"] == [160, 160]
    assert told["top"] == {output["name"]: [{"index": 7, "label": "seven", "value": 0.99609375}]}
    assert np.shape(output["values"]) == (1, 10)
    assert sum(told["nodes"].values()) == 9
    ran = oplet("run", DIGITS / "digits_int8.tflite", "--json", "-o", tmp_path / "y.npy")
    told = json.loads(ran.out)
    assert told["written"] == str(tmp_path / "y.npy")
    assert "values" not in told["outputs"][0]
    assert ran.err == ""


# The neighbours ------------------------------------------------------------------------------------------------------------


@pytest.mark.sweep
def test_compare_benchmark_and_tune_take_what_run_writes_and_raw_values(oplet, turned: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path / "cache"))
    real, raw = tmp_path / "real.npy", tmp_path / "raw.npy"
    assert oplet("run", turned, "-o", real).code == oplet("run", turned, "-o", raw, "--raw").code == 0
    assert (np.load(real).dtype, np.load(raw).dtype) == (np.float32, np.int8)
    beyond = _write(tmp_path / "beyond.json", [1e6, 0.5, 0, 0])
    commands = (
        ["compare", turned, "--delegate", "example", "--json"],
        ["benchmark", turned, "--num-runs", 1, "--min-secs", 0, "--warmup-min-secs", 0, "--json"],
        ["tune", turned, "--max-secs", 0, "--json"],
    )
    for command in commands:
        for given in (["-i", real], ["-i", raw, "--raw"]):
            ran = oplet(*command, *given)
            json.loads(ran.out)
            assert ran.err == ""
        ran = oplet(*command, "-i", beyond)
        json.loads(ran.out)
        assert "warning: input 'input_0': 1 of 4 values" in ran.err
        assert oplet(*command, "-i", beyond, "-q").err == ""


def test_a_program_keeps_the_same_rule(turned: Path, oplet, tmp_path: Path, capsys) -> None:
    program = AppContents("app", "1")
    beyond = _write(tmp_path / "beyond.json", [1e6, 0.5, 0, 0])
    for switches in ([], ["--raw", "--seed", "5"], ["-i", str(beyond)], ["-i", str(beyond), "-q", "--top", "2"]):
        ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
        ran = oplet("run", turned, *switches, "-o", ours, "--json")
        assert app_main(program, [str(turned), *switches, "-o", str(theirs), "--json"]) == 0
        printed = capsys.readouterr()
        told = json.loads(printed.out)
        assert {**told, "written": ""} == {**json.loads(ran.out), "written": ""}
        assert printed.err.replace("app: ", "oplet: ") == ran.err
        assert ours.read_bytes() == theirs.read_bytes()
    given = _write(tmp_path / "x.npy", np.zeros(4, np.int8))
    assert app_main(program, [str(turned), "-i", str(given)]) == 1
    assert "give --raw" in capsys.readouterr().err
    assert app_main(program, [str(turned), "-i", str(given), "--raw"]) == 0
    assert "(scale 0.5, zero point -10)" in capsys.readouterr().out


# Pictures ------------------------------------------------------------------------------------------------------------------


def _pictures(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """A picture of each kind, and what is to be told of it."""

    def saved(name: str, image: Image.Image, **options: Any) -> Path:
        image.save(folder / name, **options)
        return folder / name

    exif = Image.Exif()
    exif[0x0112] = 6
    rgb = Image.new("RGB", (6, 4), (200, 100, 50))
    palette = Image.new("P", (4, 4))
    frames = [Image.new("RGB", (4, 4), (i, i, i)) for i in (10, 20)]
    deep = Image.fromarray(np.full((4, 4), 65535, np.uint16))
    return {
        "as it is": (
            saved("a.png", Image.new("RGB", (4, 4))),
            ["'{}': 4 x 4 RGB, pixels 0..255 became int8 -128..127, real values -1 to 0.992188"],
        ),
        "stretched": (saved("b.png", rgb), ["6 x 4 RGB, resized to 4 x 4 (stretched: 0.667 across, 1 down)"]),
        "even": (saved("c.png", Image.new("RGB", (8, 8))), ["8 x 8 RGB, resized to 4 x 4, pixels"]),
        "turned": (saved("d.jpg", rgb, exif=exif), ["turned as its EXIF data say"]),
        "transparent": (saved("e.png", Image.new("RGBA", (4, 4))), ["4 x 4 RGBA, converted to RGB, transparency left out"]),
        "grey": (saved("f.png", Image.new("L", (4, 4))), ["4 x 4 L, converted to RGB"]),
        "palette": (saved("g.png", palette, transparency=0), ["4 x 4 P, converted to RGB, transparency left out"]),
        "16 bits": (saved("h.png", deep), ["16 bits of grey to 8, converted to RGB"]),
        "frames": (saved("i.png", frames[0], save_all=True, append_images=frames[1:]), ["the first of 2 frames"]),
        "cmyk": (saved("j.jpg", Image.new("CMYK", (4, 4))), ["4 x 4 CMYK, converted to RGB"]),
    }


KINDS = ["as it is", "stretched", "even", "turned", "transparent", "grey", "palette", "16 bits", "frames", "cmyk"]


@pytest.fixture
def picture_model(tmp_path: Path) -> Path:
    spec = Spec("int8", [1, 4, 4, 3], 1 / 128, 0)
    path = tmp_path / "picture.tflite"
    path.write_bytes(one_op_model("TRANSPOSE", [spec, np.array([0, 1, 2, 3], np.int32)], [spec]))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_to_a_picture_is_told(oplet, picture_model: Path, tmp_path: Path, kind: str) -> None:
    picture, words = _pictures(tmp_path)[kind]
    ran = oplet("run", picture_model, "-i", picture)
    assert ran.code == 0, ran.err
    assert ran.err.startswith(f"oplet: input 'input_0': '{picture}': ")
    assert ran.err.count("\n") == 1
    for text in words:
        assert text.format(picture) in ran.err
    assert oplet("run", picture_model, "-i", picture, "--quiet").err == ""


def test_a_scale_and_an_offset_of_pixels_are_told_and_give_real_or_raw_values(oplet, picture_model: Path, tmp_path: Path) -> None:
    picture = tmp_path / "p.png"
    Image.new("RGB", (4, 4), (192, 64, 0)).save(picture)
    ran = oplet("run", picture_model, "-i", picture, "--scale", 1 / 128, "--offset", -1, "--json")
    assert "pixels * 0.0078125 + -1" in ran.err
    assert json.loads(ran.out)["outputs"][0]["values"][0][0][0] == [0.5, -0.5, -1]
    ran = oplet("run", picture_model, "-i", picture, "--offset", -128, "--json", "--raw")
    assert json.loads(ran.out)["outputs"][0]["values"][0][0][0] == [64, -64, -128]
    ran = oplet("run", picture_model, "-i", picture, "--raw", "--scale", 1, "--json")
    assert ran.code == 1
    assert "192.0 at [0, 0, 0, 0], which is no int8" in ran.err
    ran = oplet("run", picture_model, "-i", picture, "--scale", 1, "--json")
    assert "warning: input 'input_0': 32 of 48 values" in ran.err
    ran = oplet("run", picture_model, "-i", picture, "--scale", "nan")
    assert ran.code == 2
    assert "nan is no finite number" in ran.err


def _metadata(mean: list[float], std: list[float]) -> bytes:
    """The bytes of TFLITE_METADATA as TFLite's tools write them, with numbers for the pixels of the second input alone."""
    builder = flatbuffers.Builder()

    def table(fields: dict[int, int], unions: dict[int, int] | None = None) -> int:
        builder.StartObject(8)
        for slot, offset in fields.items():
            builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
        for slot, kind in (unions or {}).items():
            builder.PrependUint8Slot(slot, kind, 0)
        return builder.EndObject()

    def tables(*offsets: int) -> int:
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()

    numbers = [builder.CreateNumpyVector(np.array(each, np.float32)) for each in (mean, std)]
    unit = table({1: table(dict(enumerate(numbers)))}, {0: 1})
    inputs = tables(table({}), table({4: tables(unit)}))
    builder.Finish(table({3: tables(table({2: inputs}))}), b"M001")
    return bytes(builder.Output())


def _two_pictures(folder: Path, metadata: bytes) -> Path:
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y, z = (main.add_tensor(name, "float32", [1, 2, 2, 3]) for name in "xyz")
    main.add_operator("ADD", [x, y], [z])
    main.set_inputs(x, y)
    main.set_outputs(z)
    builder.add_metadata("TFLITE_METADATA", metadata)
    path = folder / "two.tflite"
    path.write_bytes(builder.to_bytes())
    return path


@pytest.mark.parametrize(("mean", "std"), [([127.5], [127.5]), ([0, 1, 2], [255, 1, 2]), ([127.5], [1, 2, 4])])
def test_float_inputs_take_pixels_as_the_model_s_metadata_say(oplet, tmp_path: Path, mean: list[float], std: list[float]) -> None:
    model = _two_pictures(tmp_path, _metadata(mean, std))
    pixels = np.random.default_rng(0).integers(0, 255, (2, 2, 3), np.uint8, endpoint=True)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    zeros = _write(tmp_path / "zeros.npy", np.zeros((1, 2, 2, 3), np.float32))

    def answer(*given: Any) -> Any:
        ran = oplet("run", model, *given, "--json")
        assert ran.code == 0, ran.err
        return np.array(json.loads(ran.out)["outputs"][0]["values"])[0], ran.err

    value, told = answer("-i", f"y={tmp_path / 'p.png'}", "-i", f"x={zeros}")
    np.testing.assert_allclose(value, (pixels - np.array(mean)) / np.array(std), rtol=1e-6)
    assert "as the model's metadata say" in told
    assert f"mean {mean[0]:g}" in told or "mean [0, 1, 2]" in told
    value, told = answer("-i", f"x={tmp_path / 'p.png'}", "-i", f"y={zeros}")  # of which they say nothing
    np.testing.assert_allclose(value, pixels / 255, rtol=1e-6)
    assert "pixels 0..255 became 0..1" in told
    value, told = answer("-i", f"y={tmp_path / 'p.png'}", "-i", f"x={zeros}", "--scale", 2)
    np.testing.assert_allclose(value, pixels * 2.0)
    assert "metadata" not in told


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (_metadata([1, 2], [1, 2]), "2 numbers for 3 channels"),
        (_metadata([1], [0]), "no usable numbers"),
        (_metadata([float("nan")], [1]), "no usable numbers"),
        (_metadata([], []), "no usable numbers"),
        (b"\xff" * 40, "cannot be read"),
    ],
)
def test_metadata_that_say_nothing_usable_of_pixels_are_told(oplet, tmp_path: Path, metadata: bytes, words: str) -> None:
    model = _two_pictures(tmp_path, metadata)
    Image.new("RGB", (2, 2)).save(tmp_path / "p.png")
    ran = oplet("run", model, "-i", f"y={tmp_path / 'p.png'}")
    assert (ran.code, ran.out) == (1, "")
    assert words in ran.err
    assert "give --scale and --offset" in ran.err
    assert ran.err.count("\n") == 1
    assert oplet("run", model, "-i", f"y={tmp_path / 'p.png'}", "--scale", 1).code == oplet("run", model).code == 0


# The page --------------------------------------------------------------------------------------------------------------------


def _examples() -> list[tuple[str, str]]:
    """Each command of the page with what the page says it prints."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    commands = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [tuple(part.split("\n", 1)) for part in commands]  # type: ignore[misc]


def test_the_page_s_examples_print_what_it_says(oplet, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DIGITS, tmp_path, dirs_exist_ok=True)
    examples = _examples()
    assert len(examples) > 5
    for command, printed in examples:
        if command.startswith("echo"):
            text, _, name = command.removeprefix("echo ").partition(" > ")
            (tmp_path / name).write_text(text.strip("'") + "\n")
            continue
        if command.startswith("cat"):
            assert (tmp_path / command.split()[1]).read_text() == printed, command
            continue
        program, *arguments = command.split()
        assert program == "oplet", command
        ran = oplet(*arguments)
        said = "\n".join(line for line in (ran.err + ran.out).splitlines() if not line.startswith(("nodes: ", "─", "name ")))
        for line in printed.splitlines():
            assert line in said, (command, line, said)


@pytest.mark.skipif(sys.platform != "linux", reason="the width of the help differs")
def test_the_help_says_the_rule(oplet) -> None:
    told = " ".join(oplet("run", "--help").out.split())
    for words in ("Values are real numbers on the way in and out", "need --raw", "--quiet", "--raw"):
        assert words in told
