"""`oplet doctor` and `inspect` say of TensorFlow's operators what the delegate says of the nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plugins.flex_delegate.tests.flex_models import FlexModel

from oplet import Interpreter, PluginManager
from oplet.errors import UnresolvedOpError
from oplet_flex_delegate.guards import dangers
from oplet_tools.describing.doctor import examine
from oplet_tools.describing.inspect import inspect_model

ONLY = PluginManager.named(["oplet-flex-delegate"], "plugins")
DANGERS = sorted(dangers._REASONS)


@pytest.fixture(scope="module")
def all_dangers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a node of each operator that is never run."""
    model = FlexModel().tensor("t0", np.float32, [1])
    for number, op in enumerate(DANGERS):
        model.tensor(f"t{number + 1}", np.float32, [1]).flex(op, f"t{number}", f"t{number + 1}")
    path = tmp_path_factory.mktemp("models") / "dangers.tflite"
    path.write_bytes(model.content("t0", f"t{len(DANGERS)}"))
    return path


def test_no_operator_that_is_never_run_is_called_served(all_dangers: Path) -> None:
    found = {each.op: each for each in examine(all_dangers, ONLY).operators}
    assert found.keys() == {f"Flex{op}" for op in DANGERS}
    for op in DANGERS:
        assert not found[f"Flex{op}"].is_served, op
        assert found[f"Flex{op}"].fix.startswith(
            f"The delegate flex leaves it alone: TensorFlow's {op} is left alone: {dangers.never(op)}"
        )
    described = inspect_model(all_dangers, ONLY)["ops"]
    assert not [op["op"] for op in described if op["distribution"]]
    assert all("left alone" in op["advice"] for op in described)
    with pytest.raises(UnresolvedOpError):
        Interpreter(all_dangers, plugins=ONLY).allocate_tensors()


def test_a_node_that_is_no_operator_of_tensorflow_s_is_not_served(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    model = FlexModel().tensor("x", np.float32, [1]).tensor("y", np.float32, [1])
    path.write_bytes(model.flex("SentencepieceOfMars", "x", "y").content("x", "y"))
    [found] = examine(path, ONLY).operators
    assert not found.is_served
    assert "SentencepieceOfMars was not tried" in found.fix
