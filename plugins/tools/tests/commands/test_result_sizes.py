"""Results whose size the model decides: they are reckoned before they are converted, and too large ones are not written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from oplet import ModelBuilder
from oplet.schema.enums import TensorType
from oplet_tools.running.values.result_sizes import result_bytes


def texts_model(path: Path, length: int, count: int) -> Path:
    """A model of one text that FILL gives as often as it is asked to; it takes an input that it does not use."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x = main.add_tensor("x", "float32", [1])
    text = main.add_tensor("text", TensorType.STRING, [], data=[b"x" * length])
    shape = main.add_tensor("shape", "int32", [1], data=[count])
    y = main.add_tensor("y", TensorType.STRING, [count])
    main.add_operator("FILL", [shape, text], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    path.write_bytes(builder.to_bytes())
    return path


@pytest.mark.parametrize("options", [("-o", "x.npz"), ("-o", "x.npy"), ("-o", "x.json"), ("--json",)])
def test_a_small_model_writes_no_gigabytes(
    oplet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = texts_model(tmp_path / "m.tflite", 60_000, 100_000)
    assert model.stat().st_size < 62_000
    ran = oplet("run", model, *options)
    assert (ran.code, ran.out) == (1, "")
    assert "The outputs up to 'y' of shape [100000] would take up to " in ran.err
    assert "--max-result-bytes 1073741824 allows no more; give a higher number" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["m.tflite"]


def test_the_option_lets_results_be_as_large_as_the_user_wants(oplet, tmp_path: Path) -> None:
    model = texts_model(tmp_path / "m.tflite", 100, 50)
    for name, least in (("x.npz", 5_000), ("x.json", 50 * (8 + 600))):
        assert oplet("run", model, "-o", tmp_path / name, "--max-result-bytes", least - 1).code == 1
        assert not (tmp_path / name).exists()
        assert oplet("run", model, "-o", tmp_path / name, "--max-result-bytes", least).code == 0
    assert oplet("run", model, "--max-result-bytes", 1).code == 0, "a table shows the beginning alone"


@pytest.mark.parametrize("kind", ["jsonl", "csv", "npz", "parquet"])
def test_a_row_whose_results_are_too_large_fails_alone(oplet, tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = (main.add_tensor(name, "float32", [1, 1], shape_signature=[1, -1]) for name in "xy")
    main.add_operator("FLOOR", [x], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    (tmp_path / "m.tflite").write_bytes(builder.to_bytes())
    (tmp_path / "x.jsonl").write_text(f'{{"x": [1]}}\n{{"x": {[0] * 1000}}}\n{{"x": [2]}}\n')
    target = tmp_path / f"r.{kind}"
    ran = oplet("run", tmp_path / "m.tflite", "-i", tmp_path / "x.jsonl", "-o", target, "--max-result-bytes", 2000)
    assert ran.code == 3
    assert "1 row of 3 failed" in ran.err
    assert "--max-result-bytes 2000 allows no more" in ran.err
    if kind == "jsonl":
        assert ["error" in json.loads(line) for line in target.read_text().splitlines()] == [False, True, False]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "npz", "parquet"])
def test_the_results_of_all_rows_are_counted_together_in_a_file(oplet, tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    model = tmp_path / "m.tflite"
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = (main.add_tensor(name, "float32", [1, 100]) for name in "xy")
    main.add_operator("FLOOR", [x], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    model.write_bytes(builder.to_bytes())
    rows = [[row] * 100 for row in range(60)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"x": row}) + "\n" for row in rows))
    target = tmp_path / f"r.{kind}"
    run = ("run", model, "-i", tmp_path / "x.jsonl", "--max-result-bytes")
    for resumed in ((), ("--resume",)):  # which counts what is there
        ran = oplet(*run, 10_000, "-o", target, *resumed)
        assert (ran.code, target.exists()) == (1, False)
        assert "--max-result-bytes 10000 allows no more; give a higher number, with --resume to go on." in ran.err
        kept = sum(path.stat().st_size for path in Path(f"{target}.oplet-run").glob("rows.*"))
        assert 1_000 < kept <= 10_000
    ran = oplet(*run, 100_000, "-o", target, "--resume")
    assert ran.code == 0, ran.err
    if kind == "npz":
        with np.load(target) as arrays:
            assert arrays["y"].tolist() == rows
    elif kind == "jsonl":
        assert [json.loads(line)["outputs"]["y"] for line in target.read_text().splitlines()] == rows
    assert oplet(*run, 10_000).code == 0, "a stream has no end that it could be too large for"


def test_texts_that_an_npz_makes_as_long_as_the_longest_are_counted_before_it_is_written(oplet, tmp_path: Path) -> None:
    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = (main.add_tensor(name, TensorType.STRING, [1, 2]) for name in "xy")
    main.add_operator("RESHAPE", [x, main.add_tensor("shape", "int32", [2], data=[1, 2])], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    (tmp_path / "m.tflite").write_bytes(builder.to_bytes())
    rows = [["a" * 1000, "b"], *[["c", "d"]] * 99]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"x": row}) + "\n" for row in rows))
    run = ("run", tmp_path / "m.tflite", "-i", tmp_path / "x.jsonl", "-o", tmp_path / "y.npz")
    ran = oplet(*run, "--max-result-bytes", 100_000)
    assert ran.code == 1
    assert "The texts of 'y' have up to 1000 bytes and would take 200000 in an .npz" in ran.err
    assert not (tmp_path / "y.npz").exists()
    ran = oplet(*run, "--max-result-bytes", 200_000, "--resume")
    assert ran.code == 0, ran.err
    with np.load(tmp_path / "y.npz") as arrays:
        assert arrays["y"].tolist() == [[text.encode() for text in row] for row in rows]


@pytest.mark.parametrize(
    ("dtype", "real", "each"),
    [("float32", True, 4), ("int8", False, 1), ("int8", True, 8), ("bool", True, 1), ("complex64", True, 8)],
)
def test_numbers_are_reckoned_as_they_are_written(dtype: str, real: bool, each: int) -> None:
    array = np.zeros((3, 5), dtype)
    assert result_bytes(array, 1 << 30, as_text=False, real=real) == 15 * each
    assert result_bytes(array, 1 << 30, as_text=True, real=real) >= len(json.dumps(np.stack([array.real, array.imag]).tolist()))
