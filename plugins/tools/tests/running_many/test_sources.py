"""`oplet run` on many rows: wherever they come from, each gives what it gives alone."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def outputs(text: str, name: str = "probabilities") -> np.ndarray:
    """The outputs of JSON lines."""
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["row"] for line in lines] == list(range(len(lines)))
    return np.array([line["outputs"][name] for line in lines])


def names(text: str) -> list[str]:
    return [json.loads(line)["name"] for line in text.splitlines()]


def test_each_picture_of_a_folder_gives_what_it_gives_alone(oplet, digits: Path, pictures: Path) -> None:
    (pictures / "notes.txt").write_text("no picture")
    (pictures / ".hidden.png").write_text("hidden")
    ran = oplet("run", digits, "-i", pictures)
    assert ran.code == 0, ran.err
    assert names(ran.out) == sorted(str(p.relative_to(pictures)) for p in pictures.rglob("[0-9]*.png"))
    assert "1 file of kinds that are no inputs left out: 1 .txt" in ran.err
    for name, row in zip(names(ran.out), outputs(ran.out)):
        alone = json.loads(oplet("run", digits, "-i", pictures / name, "--json").out)
        np.testing.assert_array_equal(row, alone["outputs"][0]["values"][0])


@pytest.mark.parametrize("how", ["here", "threads", "processes"])
def test_workers_give_the_same_in_the_same_order(oplet, digits: Path, pictures: Path, how: str) -> None:
    more = {"here": [], "threads": ["--workers", 3], "processes": ["--workers", 2, "--processes"]}[how]
    serial, ran = oplet("run", digits, "-i", pictures), oplet("run", digits, "-i", pictures, *more)
    assert (ran.code, ran.out) == (0, serial.out), ran.err


@pytest.mark.parametrize("kind", ["npy", "fortran", "npz", "deflated", "folder of npy", "jsonl", "bare lines", "stdin"])
def test_rows_of_arrays_and_lines(oplet, digits: Path, images, expected, tmp_path: Path, monkeypatch, kind: str) -> None:
    source: Path | str = tmp_path / "rows"
    lines = [json.dumps({"image": row.tolist(), "label": 3}) for row in images]
    if kind in ("npy", "fortran"):
        source = tmp_path / "rows.npy"
        np.save(source, np.asfortranarray(images) if kind == "fortran" else images)
    elif kind in ("npz", "deflated"):
        source = tmp_path / "rows.npz"
        (np.savez if kind == "npz" else np.savez_compressed)(source, image=images, label=np.arange(20))
    elif kind == "folder of npy":
        source.mkdir()
        for number, row in enumerate(images):
            np.save(source / f"{number:02}.npy", row)
    elif kind == "stdin":
        source = "-"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n\n".join(lines).encode())))
    else:
        source = tmp_path / "rows.jsonl"
        source.write_text("\n".join(lines if kind == "jsonl" else [json.dumps(row.tolist()) for row in images]) + "\n\n")
    ran = oplet("run", digits, "-i", source)
    assert ran.code == 0, ran.err
    np.testing.assert_array_equal(outputs(ran.out), expected(images))


@pytest.mark.parametrize(
    "kind", ["flat.parquet", "nested.parquet", "tensor.parquet", "file.arrow", "stream.arrow", "zipped.feather"]
)
def test_rows_of_tables(oplet, digits: Path, images, expected, tmp_path: Path, kind: str) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    flat = pa.FixedSizeListArray.from_arrays(pa.array(images.ravel()), 64)
    column = {"nested": lambda: pa.array(images.tolist()), "tensor": lambda: pa.FixedShapeTensorArray.from_numpy_ndarray(images)}
    table = pa.table(
        {"image": column.get(kind.split(".")[0], lambda: flat)(), "name": [f"row {n}" for n in range(20)], "n": range(20)}
    )
    path = tmp_path / kind
    if kind.endswith("parquet"):
        parquet.write_table(table, path, row_group_size=7)
    elif kind == "zipped.feather":
        feather.write_feather(table, path, compression="zstd" if pa.Codec.is_available("zstd") else "uncompressed")
    else:
        with (
            pa.OSFile(str(path), "wb") as sink,
            (pa.ipc.new_file if kind == "file.arrow" else pa.ipc.new_stream)(sink, table.schema) as w,
        ):
            w.write_table(table, max_chunksize=6)
    ran = oplet("run", digits, "-i", path, "--workers", 2)
    assert ran.code == 0, ran.err
    assert names(ran.out) == [f"row {n}" for n in range(20)]
    np.testing.assert_array_equal(outputs(ran.out), expected(images))


@pytest.mark.parametrize("form", ["bytes", "struct"])
def test_pictures_in_a_table(oplet, digits: Path, pictures: Path, tmp_path: Path, form: str) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    files = sorted(pictures.rglob("*.png"))
    cells = [path.read_bytes() for path in files]
    column = cells if form == "bytes" else [{"bytes": cell, "path": "x.png"} for cell in cells]
    parquet.write_table(pa.table({"picture": [*column, None]}), tmp_path / "p.parquet")
    ran, alone = oplet("run", digits, "-i", tmp_path / "p.parquet"), oplet("run", digits, "-i", pictures)
    assert ran.code == 3
    lines = ran.out.splitlines()
    np.testing.assert_array_equal(outputs("\n".join(lines[:12])), outputs(alone.out))
    assert json.loads(lines[12])["error"] == "'p.parquet[12]' has no value for the input 'picture'.".replace("picture", "image")


def test_an_array_that_fits_as_one_value_is_one_unless_rows_are_asked_for(oplet, tmp_path: Path) -> None:
    from oplet import ModelBuilder

    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = (main.add_tensor(name, "float32", [1, 2], shape_signature=[-1, 2]) for name in "xy")
    main.add_operator("FLOOR", [x], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    (tmp_path / "m.tflite").write_bytes(builder.to_bytes())
    np.save(tmp_path / "x.npy", np.array([[1.5, 2], [3, 4.5]], np.float32))
    single = oplet("run", tmp_path / "m.tflite", "-i", tmp_path / "x.npy")
    assert "[2, 2]" in single.out
    ran = oplet("run", tmp_path / "m.tflite", "-i", tmp_path / "x.npy", "--rows")
    np.testing.assert_array_equal(outputs(ran.out, "y"), [[1, 2], [3, 4]])


def test_several_inputs_go_together_row_by_row(oplet, sums: Path, tmp_path: Path) -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.full((3, 2), 10, np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "both.npz", y=y, x=x)
    (tmp_path / "y.jsonl").write_text("\n".join(json.dumps(row.tolist()) for row in y))
    (tmp_path / "y.json").write_text("[10, 10]")
    for folder, rows in (("a", x), ("b", y)):
        (tmp_path / folder).mkdir()
        for number, row in enumerate(rows):
            np.save(tmp_path / folder / f"{number}.npy", row)
    for given in (
        ["-i", tmp_path / "x.npy", "-i", tmp_path / "y.jsonl"],
        ["-i", f"y={tmp_path / 'y.jsonl'}", "-i", tmp_path / "x.npy"],
        ["-i", tmp_path / "both.npz"],
        ["-i", tmp_path / "x.npy", "-i", f"y={tmp_path / 'y.json'}"],  # the same in each row
        ["-i", f"x={tmp_path / 'a'}", "-i", f"y={tmp_path / 'b'}"],
    ):
        ran = oplet("run", sums, *given)
        assert ran.code == 0, (given, ran.err)
        np.testing.assert_array_equal(outputs(ran.out, "z"), x + y)


def test_what_does_not_go_together_is_refused(oplet, sums: Path, tmp_path: Path) -> None:
    x = np.zeros((3, 2), np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "short.npy", x[:2])
    np.save(tmp_path / "wide.npy", np.zeros((3, 5), np.float32))
    np.savez(tmp_path / "uneven.npz", x=x, y=x[:2])
    for folder, name in (("a", "1.npy"), ("b", "2.npy")):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / name, x[0])
    (tmp_path / "empty").mkdir()
    for given, words in (
        (["x.npy"], "No value is given for the input 'y'"),
        (["x.npy", "y=short.npy"], "has 3 rows and"),
        (["x=x.npy", "x=x.npy"], "given twice"),
        (["x=wide.npy", "y=x.npy"], "has the shape [3, 5], input 'x' takes [1, 2]"),
        (["uneven.npz"], "different numbers of rows: 'x' 3, 'y' 2"),
        (["x=a", "y=b"], "has no file '1'"),
        (["x=empty", "y=x.npy"], "has no files that can be inputs"),
        (["z=x.npy"], "no input 'z'"),
        (["x=nothing.jsonl", "y=x.npy"], "nothing.jsonl: No such file"),
    ):
        texts = [f"{t.partition('=')[0]}={tmp_path / t.partition('=')[2]}" if "=" in t else str(tmp_path / t) for t in given]
        ran = oplet("run", sums, "--rows", *(part for text in texts for part in ("-i", text)))
        assert ran.code == 1, given
        assert words in ran.err, ran.err
        assert ran.err.count("\n") == 1


def test_text_goes_in_and_comes_out(oplet, tmp_path: Path) -> None:
    from oplet import ModelBuilder
    from oplet.schema.enums import TensorType

    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = (main.add_tensor(name, TensorType.STRING, [1]) for name in "xy")
    shape = main.add_tensor("shape", "int32", [1], data=np.array([1], np.int32))
    main.add_operator("RESHAPE", [x, shape], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    (tmp_path / "m.tflite").write_bytes(builder.to_bytes())
    (tmp_path / "x.jsonl").write_text('{"x": "ä"}\n{"x": ["=1+1"]}\n')
    ran = oplet("run", tmp_path / "m.tflite", "-i", tmp_path / "x.jsonl", "-o", tmp_path / "y.csv")
    assert ran.code == 0, ran.err
    assert "ä" in (tmp_path / "y.csv").read_text("utf-8")
    assert "'=1+1" in (tmp_path / "y.csv").read_text("utf-8")
    assert oplet("run", tmp_path / "m.tflite", "-i", tmp_path / "x.jsonl", "-o", tmp_path / "y.npz").code == 0
    with np.load(tmp_path / "y.npz") as arrays:
        assert arrays["y"].ravel().tolist() == ["ä".encode(), b"=1+1"]


def test_pictures_are_prepared_as_the_user_says(oplet, tmp_path: Path) -> None:
    from oplet import ModelBuilder

    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = (main.add_tensor(name, "float32", [1, 2, 2, 3]) for name in "xy")
    main.add_operator("FLOOR", [x], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    model = tmp_path / "m.tflite"
    model.write_bytes(builder.to_bytes())
    folder = tmp_path / "p"
    folder.mkdir()
    pixels = np.zeros((2, 4, 3), np.uint8)
    pixels[:, 1:3] = [10, 20, 30]
    Image.fromarray(pixels).save(folder / "wide.png")

    def run(words: str) -> np.ndarray:
        ran = oplet("run", model, "-i", folder, "--preprocess", words)
        assert ran.code == 0, ran.err
        single = oplet("run", model, "-i", folder / "wide.png", "--preprocess", words, "--json")
        np.testing.assert_array_equal(outputs(ran.out, "y")[0], json.loads(single.out)["outputs"][0]["values"][0])
        return outputs(ran.out, "y")[0]

    assert run("scale=1").tolist() == [[[5, 10, 15]] * 2] * 2  # stretched
    assert run("resize=crop,scale=1").tolist() == [[[10, 20, 30]] * 2] * 2
    assert run("resize=crop,order=bgr,scale=1").tolist() == [[[30, 20, 10]] * 2] * 2
    assert run("resize=crop,mean=1:2:3,std=1:2:3").tolist() == [[[9, 9, 9]] * 2] * 2
    padded = run("resize=pad,fill=7,scale=1,offset=1")
    assert padded[1].tolist() == [[8, 8, 8]] * 2 or padded[0].tolist() == [[8, 8, 8]] * 2
    assert run("filter=nearest,scale=1").max() == 30
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "none of resize="),
        ("size=3", "none of resize="),
        ("resize=fit", "give stretch, crop or pad"),
        ("filter=x", "give box"),
        ("resize=crop,resize=pad", "twice"),
        ("mean=1,scale=2", "both say"),
        ("fill=3", "goes with resize=pad"),
        ("resize=pad,fill=256", "a pixel of 0 to 255"),
        ("std=0", "nothing can be divided"),
        ("mean=1:2:3:4:5", "several with colons"),
        ("scale=1:2", "give a finite number"),
        ("offset=inf", "give a finite number"),
    ],
)
def test_words_that_say_nothing_of_pictures_are_refused(oplet, digits: Path, pictures: Path, words: str, told: str) -> None:
    ran = oplet("run", digits, "-i", pictures, "--preprocess", words)
    assert (ran.code, ran.out) == (1, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1
