"""Models read and written again: nothing is lost, whoever reads them next."""

from __future__ import annotations

import collections
import itertools
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.children import LONG
from tests.places import CONFORMANCE

from oplet import Interpreter, Model, ModelBuilder
from oplet.errors import ModelError
from oplet.schema import options, tables
from oplet.testing import invoke, litert_interpreter

ARCHIVES = sorted(path for folder in ("ops", "real") for path in (CONFORMANCE / folder).glob("*.zip"))
BAD = sorted((CONFORMANCE / "bad").glob("*.tflite"))
WORKER = Path(__file__).parent / "litert_compare.py"

recorded = pytest.mark.skipif(not ARCHIVES, reason="the recorded cases lie outside the project and are not here")


def cases() -> list[tuple[Path, str]]:
    """Archive and name of every recorded model."""
    found = []
    for path in ARCHIVES:
        with zipfile.ZipFile(path) as archive:
            found += [(path, name.rsplit("/", 1)[0]) for name in archive.namelist() if name.endswith("/model.tflite")]
    return sorted(found)


def files() -> Iterator[tuple[str, bytes]]:
    """Name and content of every recorded model, hostile ones included."""
    for path in ARCHIVES:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".tflite"):
                    yield f"{path.stem}/{name}", archive.read(name)
    for path in BAD:
        yield path.name, path.read_bytes()


def contents(model: Model) -> tuple[list[bytes | None], list[bytes]]:
    """Constants and custom options by value, wherever they lie."""
    buffers = [model.buffer(index) for index in range(len(model.root.buffers or []))]
    options = [model.custom_options(o) for s in model.root.subgraphs or [] for o in s.operators or []]
    return [None if data is None else data.tobytes() for data in buffers], options


def without_code_positions(root: tables.Model) -> tables.Model:
    """Nodes of compiled models say where the accelerator's code lies in the file; that moves when the file changes."""
    for subgraph in root.subgraphs or []:
        for operator in subgraph.operators or []:
            codes = root.operator_codes or []
            if operator.opcode_index < len(codes) and codes[operator.opcode_index].custom_code == "DISPATCH_OP":
                operator.custom_options = None
    return root


@recorded
def test_every_recorded_model_reads_back_equal_and_writes_the_same_bytes_again() -> None:
    count = 0
    for name, original in files():
        try:
            model = Model.from_bytes(original)
        except ModelError:
            continue  # the hostile ones that no reader takes
        written = model.to_bytes()
        again = Model.from_bytes(written)
        assert without_code_positions(again.root) == without_code_positions(model.root), name
        assert Model.from_bytes(written).to_bytes() == written, name
        count += 1
    assert count > 2700


@recorded
def test_constants_and_custom_options_are_the_same_bytes_inside_and_outside() -> None:
    checked = 0
    for name, content in itertools.islice(files(), 0, None, 4):
        try:
            original = Model.from_bytes(content)
        except ModelError:
            continue
        outside = Model.from_bytes(original.to_bytes("outside"))
        wanted, wanted_options = contents(original)
        for written in (outside, Model.from_bytes(outside.to_bytes("inside"))):
            got, got_options = contents(written)
            # The converter's mark that says where constants lie is one more buffer.
            assert got[: len(wanted)] == wanted, name
            assert got_options == wanted_options or "precompiled" in name, name
            checked += len(wanted)
        assert outside.to_bytes() == Model.from_bytes(outside.to_bytes()).to_bytes(), name
    assert checked > 3000


def deep(a: Any, b: Any, where: str = "model") -> str:
    """The first place where two objects of LiteRT's own schema module differ; empty if none."""
    if type(a) is not type(b):
        return f"{where}: {type(a).__name__} and {type(b).__name__}"
    if isinstance(a, np.ndarray):
        return "" if a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() else where
    if isinstance(a, list):
        if len(a) != len(b):
            return f"{where}: {len(a)} and {len(b)} items"
        return next((d for i, (x, y) in enumerate(zip(a, b)) if (d := deep(x, y, f"{where}[{i}]"))), "")
    if hasattr(a, "__dict__"):
        return next((d for k in a.__dict__ if (d := deep(a.__dict__[k], b.__dict__[k], f"{where}.{k}"))), "")
    return "" if a == b or (a != a and b != b) else f"{where}: {a!r} and {b!r}"


def compare_in_litert_schema(every: int) -> int:
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    count = 0
    for path, name in cases()[::every]:
        with zipfile.ZipFile(path) as archive:
            original = archive.read(f"{name}/model.tflite")
        try:
            written = Model.from_bytes(original).to_bytes()
        except ModelError:
            continue
        a, b = (schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(d), 0)) for d in (original, written))
        if "precompiled" in name:
            for subgraph in (*a.subgraphs, *b.subgraphs):
                for operator in subgraph.operators:
                    operator.customOptions = None
        assert not deep(a, b), (name, deep(a, b))
        count += 1
    return count


@recorded
def test_litert_s_own_schema_module_finds_nothing_lost() -> None:
    assert compare_in_litert_schema(12) > 200


@recorded
@pytest.mark.slow
def test_litert_s_own_schema_module_finds_nothing_lost_in_any_model() -> None:
    assert compare_in_litert_schema(1) > 2600


def run_in_litert(chosen: list[tuple[Path, str]], constants: str) -> collections.Counter[str]:
    """Compare answers in a process that may die; its verdicts, counted."""
    pytest.importorskip("ai_edge_litert")
    verdicts: collections.Counter[str] = collections.Counter()
    wrong = []
    left = chosen
    while left:
        lines = "".join(f"{path}\t{name}\t{constants}\n" for path, name in left)
        done = subprocess.run([sys.executable, str(WORKER)], input=lines, capture_output=True, text=True, timeout=LONG)
        said = [line for line in done.stdout.splitlines() if line]
        answered = [line for line in said if line.split(":")[0] in ("same", "different", "unstable", "refused")]
        for (path, name), answer in zip(left, answered):
            verdicts[answer.split(":")[0]] += 1
            if answer.startswith("different"):
                wrong.append(f"{path.stem}/{name}: {answer}")
        left = left[len(answered) :]
        if left:
            assert done.returncode < 0, done.stderr[-2000:]
            verdicts["died"] += 1
            left = left[1:]
    assert not wrong, "\n".join(wrong)
    return verdicts


@recorded
@pytest.mark.parametrize("constants", ["as they are", "outside"])
def test_litert_runs_a_sample_of_rewritten_models_to_the_same_outputs(constants: str) -> None:
    chosen = [case for case in cases() if case[0].stem != "unrunnable"][:: 10 if constants == "outside" else 9]
    assert run_in_litert(chosen, constants)["same"] > 0.9 * len(chosen)


@recorded
@pytest.mark.slow
@pytest.mark.parametrize("constants", ["as they are", "outside"])
def test_litert_runs_every_rewritten_model_to_the_same_outputs(constants: str) -> None:
    verdicts = run_in_litert(cases(), constants)
    assert verdicts["same"] > 2600, verdicts


def adder(*constants: np.ndarray) -> ModelBuilder:
    """y = x + constants[0][-4:]... a model whose answer depends on the last values of each constant."""
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    total = main.add_tensor("x", "float32", [4])
    main.set_inputs(total)
    for number, constant in enumerate(constants):
        whole = main.add_tensor(f"constant{number}", "float32", [constant.size], data=constant)
        begin = main.add_tensor(f"begin{number}", "int32", [1], data=np.array([constant.size - 4], np.int32))
        size = main.add_tensor(f"size{number}", "int32", [1], data=np.array([4], np.int32))
        part = main.add_tensor(f"part{number}", "float32", [4])
        main.add_operator("SLICE", [whole, begin, size], [part], options.SliceOptions())
        following = main.add_tensor(f"sum{number}", "float32", [4])
        main.add_operator("ADD", [total, part], [following], options.AddOptions())
        total = following
    main.set_outputs(total)
    return builder


def ask(interpreter: Any) -> list[float]:
    answer: list[float] = invoke(interpreter, np.ones(4, np.float32))[0].tolist()
    return answer


@pytest.mark.parametrize("constants", ["inside", "outside"])
def test_both_runtimes_read_constants_where_they_are_written(constants: Any, tmp_path: Path) -> None:
    theirs = litert_interpreter()
    path = tmp_path / "model.tflite"
    model = adder(np.arange(8, dtype=np.float32), np.arange(3000, dtype=np.float32)).build()
    model.save(path, constants=constants)
    assert all((b.offset > 1) == (constants == "outside") for b in (Model.open(path).root.buffers or [])[1:4])
    wanted = (1 + np.arange(4, 8) + np.arange(2996, 3000)).tolist()
    assert ask(Interpreter(model_path=str(path))) == wanted
    assert ask(theirs(model_path=str(path))) == wanted
    assert ask(theirs(model_content=path.read_bytes())) == wanted


@pytest.mark.slow
def test_a_model_of_more_than_two_gigabytes_is_written_read_and_run(tmp_path: Path) -> None:
    theirs = litert_interpreter()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") if hasattr(os, "sysconf") else 0
    if memory < 6 << 30 or shutil.disk_usage(tmp_path).free < 8 << 30:
        pytest.skip("needs 6 GB of memory and 8 GB of disk")
    path = tmp_path / "large.tflite"
    quarters = [np.zeros(150_000_000, np.float32) for _ in range(4)]
    for number, quarter in enumerate(quarters):
        quarter[-4:] = number + 1
    builder = adder(*[quarter[:4] for quarter in quarters])
    root = builder.build().root
    buffers, tensors = root.buffers or [], (root.subgraphs or [])[0].tensors or []
    for tensor in tensors:  # the constants join the tables as they are: a builder would copy them
        number = int((tensor.name or "x0")[-1]) if (tensor.name or "x")[-1].isdigit() else 0
        if (tensor.name or "").startswith("constant"):
            tensor.shape = np.array([quarters[number].size], np.int32)
            buffers[tensor.buffer].data = quarters[number].view(np.uint8)
        elif (tensor.name or "").startswith("begin"):
            buffers[tensor.buffer].data = np.array([quarters[number].size - 4], np.int32).view(np.uint8)
    Model(root).save(path)
    assert path.stat().st_size > 2**31
    assert ask(Interpreter(model_path=str(path))) == [11.0] * 4
    assert ask(theirs(model_path=str(path))) == [11.0] * 4
    with pytest.raises(ModelError, match="write its constants 'outside'"):
        Model(root).save(path, constants="inside")
    again = tmp_path / "again.tflite"
    Model.open(path).save(again)
    assert again.stat().st_size == path.stat().st_size
    assert ask(Interpreter(model_path=str(again))) == [11.0] * 4
