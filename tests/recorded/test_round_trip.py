"""Recorded models read and written again: nothing is lost, whoever reads them next."""

from __future__ import annotations

import collections
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.children import LONG
from tests.kinds import part
from tests.places import CONFORMANCE, ROOT
from tests.recorded_cases import ALL_GROUPS, Case, chosen, here

from oplet import Model
from oplet.errors import ModelError
from oplet.schema import tables

WORKER = ROOT / "tests" / "litert" / "litert_compare.py"

pytestmark = [here, pytest.mark.sweep(cases=True)]


def files() -> Iterator[tuple[str, bytes]]:
    """Name and content of every model of this part, hostile ones included."""
    for case in chosen(*ALL_GROUPS):
        yield case.id, case.model()
    for path in part().among(sorted((CONFORMANCE / "bad").glob("*.tflite")), lambda path: path.name):
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
    assert count > part().least(2700)


def test_constants_and_custom_options_are_the_same_bytes_inside_and_outside() -> None:
    checked = 0
    for name, content in files():
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
    assert checked > part().least(3000)


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


def test_litert_s_own_schema_module_finds_nothing_lost_in_any_model() -> None:
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    count = 0
    for case in chosen(*ALL_GROUPS):
        name, original = case.id, case.model()
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
    assert count > part().least(2600)


def run_in_litert(cases: list[Case], constants: str) -> collections.Counter[str]:
    """Compare answers in a process that may die; its verdicts, counted."""
    pytest.importorskip("ai_edge_litert")
    verdicts: collections.Counter[str] = collections.Counter()
    wrong = []
    left = cases
    while left:
        lines = "".join(f"{case.path}\t{case.name}\t{constants}\n" for case in left)
        done = subprocess.run([sys.executable, str(WORKER)], input=lines, capture_output=True, text=True, timeout=LONG)
        said = [line for line in done.stdout.splitlines() if line]
        answered = [line for line in said if line.split(":")[0] in ("same", "different", "unstable", "refused")]
        for case, answer in zip(left, answered):
            verdicts[answer.split(":")[0]] += 1
            if answer.startswith("different"):
                wrong.append(f"{case.id}: {answer}")
        left = left[len(answered) :]
        if left:
            assert done.returncode < 0, done.stderr[-2000:]
            verdicts["died"] += 1
            left = left[1:]
    assert not wrong, "\n".join(wrong)
    return verdicts


@pytest.mark.parametrize("constants", ["as they are", "outside"])
def test_litert_runs_every_rewritten_model_to_the_same_outputs(constants: str) -> None:
    verdicts = run_in_litert(chosen(*ALL_GROUPS), constants)
    assert verdicts["same"] > part().least(2600), verdicts
