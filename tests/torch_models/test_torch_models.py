"""What PyTorch writes through litert-torch answers as PyTorch does, where LiteRT refuses it, too: torch_models/make.py recorded it."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, OpResolver, PluginManager

ARCHIVE = Path(__file__).with_name("models.zip")

#: Models that are not what PyTorch computes, and what oplet makes of them.
WRONG = {
    "max_pool_indices": "its second output counts places otherwise than PyTorch; LiteRT's three ways answer as oplet does",
    "tc_1d": "its RESHAPE gives 20 values the shape of 30; LiteRT refuses it, too",
}
TOLERANCES = {"half": 2e-3, "bf16": 2e-2}


def models() -> list[str]:
    with zipfile.ZipFile(ARCHIVE) as archive:
        return sorted(name[:-7] for name in archive.namelist() if name.endswith(".tflite"))


def answer(name: str, **arguments: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What oplet answers and what PyTorch does."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        content = archive.read(f"{name}.tflite")
        recorded = np.load(io.BytesIO(archive.read(f"{name}.npz")))
    interpreter = Interpreter(model_content=content, **arguments)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        number = re.search(r"args_(\d+)", detail["name"])
        assert number is not None, detail["name"]
        interpreter.set_tensor(detail["index"], recorded[f"x{number.group(1)}"].astype(detail["dtype"]))
    interpreter.invoke()
    found = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    return found, [recorded[key] for key in sorted(key for key in recorded if key.startswith("y"))]


@pytest.fixture(scope="module", params=[(), ("compiled_ops",)], ids=["all", "numpy"])
def resolver(request: pytest.FixtureRequest) -> OpResolver:
    return PluginManager(block=request.param).resolver()


@pytest.mark.parametrize("name", [name for name in models() if name not in WRONG])
def test_answers_are_pytorch_s(name: str, resolver: OpResolver) -> None:
    found, expected = answer(name, op_resolver=resolver)
    tolerance = TOLERANCES.get(name.partition("_")[0], 1e-5)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", WRONG)
def test_models_that_are_named_as_wrong_are_wrong(name: str) -> None:
    try:
        found, expected = answer(name)
    except Exception:
        return
    assert not all(np.array_equal(ours, theirs) for ours, theirs in zip(found, expected))
