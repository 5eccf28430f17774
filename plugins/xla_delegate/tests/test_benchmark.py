"""`python -m benchmarks.gpu` runs whole, in small and on the CPU. What it measures is never asserted on."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.children import run_child
from tests.places import CONFORMANCE, ROOT

from oplet.schema.options import FullyConnectedOptions, ReshapeOptions
from oplet_testing import Graph, Op, Spec, graph_model

F32 = np.float32


def model() -> bytes:
    """A network whose RESHAPE holds the number of rows in a constant."""
    tensors = {
        "x": Spec(F32, [1, 2, 2]),
        "shape": np.array([1, 4], np.int32),
        "rows": Spec(F32, [1, 4]),
        "w": np.random.default_rng(1).standard_normal((7, 4)).astype(F32),
        "y": Spec(F32, [1, 7]),
    }
    ops = [Op("RESHAPE", "x shape", "rows", ReshapeOptions()), Op("FULLY_CONNECTED", "rows w", "y", FullyConnectedOptions())]
    return graph_model(Graph(tensors, "x", "y", ops))


@pytest.mark.sweep
def test_the_benchmark_checks_and_measures_a_device_and_writes_a_table(tmp_path: Path) -> None:
    pytest.importorskip("oplet_tools")
    source, out = tmp_path / "small.tflite", tmp_path / "gpu.md"
    source.write_bytes(model())
    options = ["--device", "cpu", "--batches", 1, 3, "--seconds", 0, "--out", out]
    recorded = (CONFORMANCE / "ops" / "ceil.zip").is_file()
    if recorded:
        folder = tmp_path / "recorded"
        folder.mkdir()
        for path in (CONFORMANCE / "run.py", CONFORMANCE / "ops" / "ceil.zip"):
            shutil.copy(path, folder)
        options += ["--recorded", folder]
    run_child([sys.executable, "-m", "benchmarks.gpu", source, *options], cwd=ROOT)
    lines = out.read_text("utf-8").splitlines()
    assert lines[0] == "Device: cpu:0 (cpu)"
    if recorded:
        assert "Recorded cases: 2 exact, 0 near, 0 wrong, 0 error, 0 crash, 0 timeout" in lines
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| small")]
    assert [(row[1], row[2]) for row in rows] == [("1", "2 of 2 in 1"), ("3", "2 of 2 in 1")]
    for row in rows:
        compiling, whole, there, difference = (float(row[place]) for place in (3, 5, 6, 9))
        assert min(compiling, whole, there) > 0
        assert difference < 1e-4
