"""A model with gradients as Flex operators trains as TensorFlow trains it, hands out its weights and takes them back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.record.training import STEPS, TRAINED, pictures

from oplet import Interpreter

#: The arguments of the signature that restores, in the order of the weights.
_ARGUMENTS = "abcde"


@pytest.fixture
def interpreter() -> Interpreter:
    return Interpreter(TRAINED.with_suffix(".tflite"), plugins=["oplet-flex-ops", "oplet-builtin-ops"])


@pytest.fixture
def recorded() -> dict[str, Any]:
    with np.load(TRAINED.with_suffix(".npz")) as arrays:
        return dict(arrays)


def train(interpreter: Interpreter, recorded: dict[str, Any]) -> list[float]:
    """Take all steps, each compared with TensorFlow's; returns the losses."""
    losses, (test, _) = [], pictures(100)
    for step in range(STEPS):
        x, y = pictures(step)
        losses.append(interpreter.get_signature_runner("train")(x=x, y=y)["loss"].item())
        np.testing.assert_allclose(losses[-1], recorded[f"loss/{step}"], rtol=1e-5, atol=1e-5)
        classes = interpreter.get_signature_runner("infer")(x=test)["classes"]
        np.testing.assert_allclose(classes, recorded[f"classes/{step}"], rtol=1e-5, atol=1e-5)
    return losses


def test_each_step_changes_the_net_as_tensorflow_does(interpreter: Interpreter, recorded: dict[str, Any]) -> None:
    train(interpreter, recorded)
    weights = interpreter.get_signature_runner("save")()
    assert len(weights) == 5
    for key, value in weights.items():
        np.testing.assert_allclose(value, recorded[f"after/{key}"], rtol=1e-5, atol=1e-5)


def test_the_net_learns(interpreter: Interpreter) -> None:
    step = interpreter.get_signature_runner("train")
    losses = [step(**dict(zip("xy", pictures(seed))))["loss"].item() for seed in range(60)]
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])
    test, labels = pictures(1000)
    classes = interpreter.get_signature_runner("infer")(x=test)["classes"].argmax(1)
    assert (classes == labels).mean() >= 0.75


def test_weights_that_are_restored_begin_again(interpreter: Interpreter, recorded: dict[str, Any]) -> None:
    first = train(interpreter, recorded)
    weights = {name: recorded[f"before/weights_{number}"] for number, name in enumerate(_ARGUMENTS)}
    assert interpreter.get_signature_runner("restore")(**weights)["done"].item() is True
    assert train(interpreter, recorded) == first


def test_each_interpreter_has_weights_of_its_own(interpreter: Interpreter, recorded: dict[str, Any]) -> None:
    train(interpreter, recorded)
    other = Interpreter(TRAINED.with_suffix(".tflite"), plugins=["oplet-flex-ops", "oplet-builtin-ops"])
    for key, value in other.get_signature_runner("save")().items():
        np.testing.assert_array_equal(value, recorded[f"before/{key}"])
