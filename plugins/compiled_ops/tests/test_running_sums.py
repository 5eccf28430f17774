"""Compiled running sums equal the numpy kernel's bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import compiled

from oplet import Interpreter, PluginManager
from oplet.schema.options import CumsumOptions
from oplet_testing import Spec, one_op_model


@pytest.mark.parametrize("kind", ["float32", "int32", "int64"])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((5, 9), 1), ((5, 9), -2), ((3, 70, 65), 1), ((1, 4), 0), ((2, 1, 3), 1)])
def test_running_sums_are_equal(shape: tuple[int, ...], axis: int, reverse: bool, exclusive: bool, kind: str) -> None:
    random = np.random.default_rng(2)
    fed: Any = (random.normal(size=shape) * 3e8).astype(kind)
    fed[random.random(shape) < 0.2] = -0.0 if kind == "float32" else np.iinfo(kind).max  # sums of integers wrap around
    options = CumsumOptions(exclusive=exclusive, reverse=reverse)
    model = one_op_model("CUMSUM", [Spec(kind, shape), np.array(axis, np.int32)], [Spec(kind, shape)], options)
    answers = []
    for block in ([], ["oplet-compiled-ops"]):
        interpreter = Interpreter(model_content=model, plugins=PluginManager(block=block))
        interpreter.allocate_tensors()
        assert compiled(interpreter) == (not block)
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], fed)
        interpreter.invoke()
        answers.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    assert answers[0].tobytes() == answers[1].tobytes()
