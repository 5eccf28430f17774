"""Results of many rows: every format holds the same, a row that fails is told and the others go on."""

from __future__ import annotations

import csv
import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budgets import examples

from oplet_tools.running.many.keeping.results import CsvLines, JsonRows, Kept, OutputForm, Records, RowResult
from oplet_tools.running.outputs import Score

FORMATS = ["jsonl", "csv", "npz", "parquet"]


def read(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """The names, errors and probabilities of results; NaN where there are none."""
    nothing = [float("nan")] * 10
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        values = [line["outputs"]["probabilities"] if "outputs" in line else nothing for line in lines]
        return [line["name"] for line in lines], [line.get("error", "") for line in lines], np.array(values)
    if path.suffix == ".csv":
        rows = list(csv.DictReader(path.open(newline="")))
        values = [[float(row[f"probabilities[{i}]"] or "nan") for i in range(10)] for row in rows]
        return [row["name"] for row in rows], [row["error"].removeprefix("'") for row in rows], np.array(values)
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return arrays["row_name"].tolist(), arrays["row_error"].tolist(), arrays["probabilities"]
    from pyarrow import parquet

    rows = parquet.read_table(path).to_pylist()
    return (
        [row["name"] for row in rows],
        [row["error"] or "" for row in rows],
        np.array([row["probabilities"] or nothing for row in rows]),
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_each_format_holds_every_row(oplet, digits: Path, pictures: Path, tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    (pictures / "05b.png").write_bytes(b"no picture")
    lines = oplet("run", digits, "-i", pictures)
    assert lines.code == 3
    (tmp_path / "all.jsonl").write_text(lines.out)
    target = tmp_path / f"r.{kind}"
    ran = oplet("run", digits, "-i", pictures, "-o", target, "--workers", 2)
    assert ran.code == 3, ran.err
    names, errors, values = read(target)
    all_names, all_errors, all_values = read(tmp_path / "all.jsonl")
    assert names == all_names
    assert [error.lstrip("'") for error in errors] == [error.lstrip("'") for error in all_errors]
    np.testing.assert_array_equal(values, all_values)
    assert [bool(error) for error in errors].index(True) == 6
    assert "is no picture" in ran.err
    assert "1 row of 13 failed" in ran.err
    assert not list(tmp_path.glob("*.oplet-run"))


@pytest.mark.parametrize("kind", FORMATS)
def test_strict_stops_at_the_first_row_that_fails(oplet, digits: Path, pictures: Path, tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    bad = pictures / "05b.png"
    bad.write_bytes(b"no picture")
    target = tmp_path / f"r.{kind}"
    ran = oplet("run", digits, "-i", pictures, "-o", target, "--strict")
    assert ran.code == 1
    assert "Row 6, '05b.png': " in ran.err
    assert not target.exists()
    lax = oplet("run", digits, "-i", pictures, "-o", target, "--resume")
    assert lax.code == 3, lax.err
    assert "continuing after 6 rows" in lax.err
    assert len(read(target)[0]) == 13


@pytest.mark.parametrize("kind", FORMATS)
def test_the_highest_scores_stand_in_place_of_the_values(
    oplet, digits: Path, pictures: Path, examples: Path, tmp_path: Path, kind: str
) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    labels = examples / "digits" / "labels.txt"
    target = tmp_path / f"r.{kind}"
    assert oplet("run", digits, "-i", pictures, "-o", target, "--top", 2, "--labels", labels).code == 0
    values = [json.loads(line)["outputs"]["probabilities"] for line in oplet("run", digits, "-i", pictures).out.splitlines()]
    best = [int(np.argmax(row)) for row in values]
    words = labels.read_text().split()
    if kind == "jsonl":
        lines = [json.loads(line) for line in target.read_text().splitlines()]
        assert [next((s["index"], s["label"], s["value"]) for s in line["top"]["probabilities"]) for line in lines] == [
            (place, words[place], max(row)) for place, row in zip(best, values)
        ]
        assert all(line["outputs"] == {} and len(line["top"]["probabilities"]) == 2 for line in lines)
    elif kind == "csv":
        rows = list(csv.DictReader(target.open(newline="")))
        assert [row["probabilities_top1_label"] for row in rows] == [words[place] for place in best]
        assert list(rows[0])[2:] == [f"probabilities_top{n}_{what}" for n in (1, 2) for what in ("index", "label", "score")] + [
            "error"
        ]
    elif kind == "npz":
        with np.load(target) as arrays:
            np.testing.assert_array_equal(arrays["probabilities"], values)
    else:
        from pyarrow import parquet

        rows = parquet.read_table(target).to_pylist()
        assert [row["probabilities"][0]["label"] for row in rows] == [words[place] for place in best]


def test_values_are_real_unless_raw(oplet, digits: Path, pictures: Path) -> None:
    raw = oplet("run", digits, "-i", pictures, "--raw", "-q")
    assert (raw.code, raw.err) == (0, "")
    real = oplet("run", digits, "-i", pictures, "-q")
    for a, b in zip(raw.out.splitlines(), real.out.splitlines()):
        integers, reals = (np.array(json.loads(line)["outputs"]["probabilities"]) for line in (a, b))
        np.testing.assert_array_equal((integers + 128) / 256, reals)


def test_only_the_first_errors_are_told_and_all_are_counted(oplet, digits: Path, pictures: Path) -> None:
    for number in range(30):
        (pictures / f"bad{number}.png").write_bytes(b"")
    ran = oplet("run", digits, "-i", pictures, "-q")
    assert ran.code == 3
    assert ran.err.count("is no picture") == 10
    assert "more rows failed; the results have their errors" in ran.err
    assert "30 rows of 42 failed" in ran.err
    assert ran.out.count('"error"') == 30


def test_a_sum_of_the_run_as_json(oplet, digits: Path, pictures: Path, tmp_path: Path) -> None:
    ran = oplet("run", digits, "-i", pictures, "-o", tmp_path / "r.csv", "--json")
    told = json.loads(ran.out)
    assert told.pop("seconds") >= 0
    assert told == {"rows": 12, "failed": 0, "before": 0, "written": str(tmp_path / "r.csv")}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--format", "npz"], "--format npz needs a file"),
        (["-o", "x.json"], "must end in .jsonl, .ndjson, .csv, .parquet, .npz"),
        (["-o", "nowhere/x.csv"], "nowhere/x.csv: No such file"),
        (["--resume"], "Only results in a file can be continued"),
        (["--signature", "no"], "signature"),
    ],
)
def test_options_that_cannot_be_are_refused(
    oplet, digits: Path, pictures: Path, tmp_path: Path, monkeypatch, more, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = oplet("run", digits, "-i", pictures, *more)
    assert (ran.code, ran.out) == (1, "")
    assert words in ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pictures"]


def test_parquet_without_pyarrow_says_what_to_install(oplet, digits: Path, pictures: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    for arguments in (["-i", pictures, "-o", tmp_path / "y.parquet"], ["-i", tmp_path / "x.parquet"]):
        ran = oplet("run", digits, *arguments)
        assert ran.code == 1
        assert "oplet-tools[arrow]" in ran.err


def test_rows_of_several_shapes(oplet, tmp_path: Path) -> None:
    from oplet import ModelBuilder

    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, y = (main.add_tensor(name, "float32", [1, 1], shape_signature=[1, -1]) for name in "xy")
    main.add_operator("FLOOR", [x], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    (tmp_path / "m.tflite").write_bytes(builder.to_bytes())
    (tmp_path / "x.jsonl").write_text('{"x": [1.5, 2.5]}\n{"x": [3.5]}\n{"x": [4.5, 5.5]}\n')
    ran = oplet("run", tmp_path / "m.tflite", "-i", tmp_path / "x.jsonl")
    assert [json.loads(line)["outputs"]["y"] for line in ran.out.splitlines()] == [[1, 2], [3], [4, 5]]
    ran = oplet("run", tmp_path / "m.tflite", "-i", tmp_path / "x.jsonl", "-o", tmp_path / "y.npz")
    assert ran.code == 3
    assert "an .npz holds rows of one shape" in ran.err
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    assert oplet("run", tmp_path / "m.tflite", "-i", tmp_path / "x.jsonl", "-o", tmp_path / "y.parquet").code == 0
    assert parquet.read_table(tmp_path / "y.parquet")["y"].to_pylist() == [[1, 2], [3], [4, 5]]


# Formats ---------------------------------------------------------------------------------------------------------------------

VALUES = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(3, np.int8), "t": np.array([b"x\n", b"\xff"], object)}
FORMS = (OutputForm("a", (2, 3)), OutputForm("b", ()), OutputForm("t", (-1,)), OutputForm("=s\n", (3,), 2, ("u", "v", "w")))
VALUES["=s\n"] = np.array([1, 3, 2], np.float32)
TOP = {"=s\n": [Score(1, "v", 3.0), Score(2, "w", 2.0)]}
NAMES = st.text(max_size=20)


@pytest.mark.parametrize("format", [JsonRows(FORMS), CsvLines(FORMS), Records(FORMS, True)], ids=["jsonl", "csv", "records"])
@settings(max_examples=examples(40), deadline=None)
@given(rows=st.lists(st.tuples(NAMES, st.booleans()), max_size=5), cut=st.integers(0, 4000))
def test_whatever_is_cut_off_leaves_the_whole_rows_before_it(format, rows, cut: int) -> None:
    import io

    pieces = [format.header()]
    for number, (name, fails) in enumerate(rows):
        result = RowResult(number, name, {}, {}, "no\nway") if fails else RowResult(number, name, VALUES, TOP)
        pieces.append(format.encode(result))
    content = b"".join(pieces)
    cut = min(cut, len(content))
    whole = 0
    while whole < len(rows) and sum(map(len, pieces[: whole + 2])) <= cut:
        whole += 1
    size = sum(map(len, pieces[: whole + 1])) if cut >= len(pieces[0]) else 0
    expected = Kept(whole, sum(fails for _, fails in rows[:whole]), size)
    assert format.read(io.BytesIO(content[:cut])) == expected
    assert format.read(io.BytesIO(content[:cut] + bytes(100))) == expected  # zeros, as a loss of power leaves them
    if len(rows) > 1:
        damaged = bytearray(content)
        damaged[len(pieces[0])] ^= 0x40
        with pytest.raises((ValueError, KeyError)):
            format.read(io.BytesIO(bytes(damaged)))


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(1)",
    "\uff1d1",
    "\uff0b1",
    "\uff0d1",
    "\uff20a",
    "\ufe661",
    "\u22121",
    " =1",
    '"=1',
    ' ""\uff1d1',
]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("before", ["", "a;", "a\t", ";", "a; ", 'a;"', "=;"])
def test_no_cell_is_a_formula_whatever_divides_cells(before: str, formula: str) -> None:
    text = before + formula
    forms = (
        OutputForm("label", (2,), 1, (text,)),
        OutputForm("spread", (1,)),
        OutputForm("json", (-1,)),
        OutputForm(text, ()),
    )
    texts = np.array([text.encode()], object)
    outputs = {"spread": texts, "json": texts, text: np.float32(1), "label": np.zeros(2, np.float32)}
    format = CsvLines(forms)
    content = format.header() + format.encode(RowResult(0, text, outputs, {"label": [Score(0, text, 1.0)]}))
    content += format.encode(RowResult(1, text, {}, {}, text))
    lines = content.decode().splitlines()
    assert len(lines) == 3
    for separator in (",", ";", "\t"):
        for cells in csv.reader(lines, delimiter=separator):
            for cell in cells:
                first = unicodedata.normalize("NFKC", cell.lstrip(' "')[:1]).replace("\u2212", "-")
                assert not first or first not in "=+-@", (separator, cell)
    [_, row, _] = csv.reader(lines)
    [cell] = [cell for cell in row if cell.startswith("[")]
    assert json.loads(cell) == [text], "JSON has the text as it is"


def test_a_row_is_a_line_whatever_its_name_is() -> None:
    for format in (JsonRows(FORMS), CsvLines(FORMS)):
        line = format.encode(RowResult(0, "a\nb\r\u2028\x1b\udcff", VALUES, TOP))
        assert line.count(b"\n") == 1
        assert b"\x1b" not in line
    header = next(csv.reader([CsvLines(FORMS).header().decode()]))
    assert header[2:8] == [f"a[{i}][{j}]" for i in range(2) for j in range(3)]
    assert header[-2].startswith("'=s\\n_top2")
