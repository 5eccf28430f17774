"""docs/gpus.md, run as it is written, on the CPU where it says GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.pages.python_blocks import python_blocks, run_blocks
from tests.places import ROOT

from oplet_testing import Graph, Op, Spec, graph_model

jax = pytest.importorskip("jax")


def test_the_page_s_code_runs_and_outputs_stay_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("oplet_predictor")
    page = ROOT / "docs" / "gpus.md"
    here = tmp_path / page.name
    text = page.read_text("utf-8")
    here.write_text(text.replace('"gpu"', '"cpu"').replace("device=gpu", "device=cpu"), "utf-8")
    assert len(list(python_blocks(here))) == 3
    monkeypatch.chdir(tmp_path)
    tensors = {"x": Spec(np.float32, [1, 4], signature=[-1, 4]), "y": Spec(np.float32, [1, 4], signature=[-1, 4])}
    Path("model.tflite").write_bytes(graph_model(Graph(tensors, "x", "y", [Op("TANH", "x", "y")])))
    rows = [np.full((1, 4), 0.25, np.float32)] * 3
    found = run_blocks(here, {"rows": rows})
    assert isinstance(found["array"], jax.Array)
    np.testing.assert_allclose(found["array"], np.tanh(rows[0]), rtol=1e-6)
