"""`oplet tune` and "auto" have it among the ways that they measure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from oplet import Delegate, Interpreter, Model, PluginManager
from oplet.schema.options import AddOptions
from oplet_testing import Graph, Op, Spec, graph_model
from oplet_xla_delegate import device

ROWS = Spec(np.float32, [64, 64])
MODEL = graph_model(Graph(dict.fromkeys("abc", ROWS), "a", "c", [Op("TANH", "a", "b"), Op("ADD", "b a", "c", AddOptions())]))
#: Seconds that compiling takes more here: no invoke of so small a model takes as long.
COMPILING = 0.5


def test_tuning_tells_compiling_apart_from_invokes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("oplet_tools")
    from oplet_tools.tuning import trials
    from oplet_tools.tuning.candidates import builtin_operators, delegate_names

    compiled: list[Any] = []
    lower = device.Device.compile

    def slowly(self: Any, lowered: Any) -> Any:
        time.sleep(COMPILING)
        compiled.append(lower(self, lowered))
        return compiled[-1]

    monkeypatch.setattr(device.Device, "compile", slowly)
    manager = PluginManager()
    assert "xla" in delegate_names(manager)
    monkeypatch.setattr(trials, "delegate_names", lambda _: ["xla"])  # the others are measured by their own tests

    def opened(prefer: Sequence[str], delegates: Sequence[Delegate]) -> Interpreter:
        return Interpreter(model_content=MODEL, experimental_delegates=delegates, prefer=prefer, plugins=manager)

    found = trials.measure(opened, manager, builtin_operators(Model.from_bytes(MODEL)))
    [ours] = [trial for trial in found if trial.candidate.delegates == ("xla",)]
    assert ours.why == ""
    assert ours.claimed == (2,)
    assert compiled
    assert ours.seconds is not None
    assert ours.seconds < COMPILING
    assert ours.ready is not None
    assert ours.ready > COMPILING
