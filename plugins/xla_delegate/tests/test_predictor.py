"""Many rows in batches, on threads: two functions are compiled, for one row and for a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.schema.options import FullyConnectedOptions
from oplet_testing import Graph, Op, Spec, graph_model, run_op
from oplet_xla_delegate import device

F32 = np.float32


def test_a_predictor_runs_batches_of_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = pytest.importorskip("oplet_predictor")
    shapes: list[Any] = []
    lower = device.Device.compile

    def noted(self: Any, lowered: Any) -> Any:
        shapes.append(lowered.in_avals[0][1][0].shape)
        return lower(self, lowered)

    monkeypatch.setattr(device.Device, "compile", noted)
    weights = np.random.default_rng(1).standard_normal((7, 4)).astype(F32)
    tensors = {
        "x": Spec(F32, [1, 4], signature=[-1, 4]), "w": weights, "y": Spec(F32, [1, 7], signature=[-1, 7]),
    }  # fmt: skip
    model = graph_model(Graph(tensors, "x", "y", [Op("FULLY_CONNECTED", "x w", "y", FullyConnectedOptions())]))
    rows = list(np.random.default_rng(2).standard_normal((21, 1, 4)).astype(F32))
    with predictor.Predictor(model, delegates=["xla:device=cpu"], batch=8) as predict:
        assert predict.batch_size == 8
        answers = [next(iter(answer.values())) for answer in predict.map(rows)]
    assert set(shapes) == {(1, 4), (8, 4)}
    for row, answer in zip(rows, answers, strict=True):
        np.testing.assert_allclose(answer, run_op(model, row)[0][0], rtol=1e-5, atol=1e-6)
