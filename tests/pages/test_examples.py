"""The committed examples do what their READMEs say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.places import EXAMPLES

from oplet import Interpreter, PluginManager
from oplet.errors import UnresolvedOpError
from oplet_testing import invoke, litert_interpreter
from oplet_tools.running.inputs import load_input

PICTURES = sorted((EXAMPLES / "digits" / "pictures").glob("*.png"))
MODELS = ["digits_float32.tflite", "digits_int8.tflite"]


def classify(interpreter, picture: Path) -> np.ndarray:
    return invoke(interpreter, load_input(picture, interpreter.get_input_details()[0]))[0]


@pytest.mark.parametrize("model", MODELS)
def test_the_models_are_small(model):
    assert (EXAMPLES / "digits" / model).stat().st_size < 100_000


@pytest.mark.parametrize("model", MODELS)
def test_every_picture_is_classified_right(model):
    interpreter = Interpreter(model_path=EXAMPLES / "digits" / model)
    answers = [int(classify(interpreter, picture).argmax()) for picture in PICTURES]
    assert answers == [int(picture.stem) for picture in PICTURES] == list(range(10))


def test_the_int8_model_gives_what_litert_gives():
    path = str(EXAMPLES / "digits" / "digits_int8.tflite")
    ours = Interpreter(model_path=path)
    theirs = litert_interpreter("BUILTIN_REF")(model_path=path)
    for picture in PICTURES:
        np.testing.assert_array_equal(classify(ours, picture), classify(theirs, picture))


def test_the_float_model_agrees_with_litert():
    path = str(EXAMPLES / "digits" / "digits_float32.tflite")
    ours, theirs = Interpreter(model_path=path), litert_interpreter()(model_path=path)
    for picture in PICTURES:
        np.testing.assert_allclose(classify(ours, picture), classify(theirs, picture), rtol=1e-4, atol=1e-6)


def test_the_atan_model_gives_the_tutorials_values():
    interpreter = Interpreter(model_path=EXAMPLES / "atan" / "atan.tflite")
    y = interpreter.get_signature_runner()(x=np.array([-8, 0.5, 2, 2.2, 201], np.float32))["y"]
    np.testing.assert_allclose(y, [-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458], rtol=0, atol=1e-6)


def test_without_its_plugin_the_atan_model_says_what_is_missing():
    interpreter = Interpreter(model_path=EXAMPLES / "atan" / "atan.tflite", plugins=PluginManager(block=["atan_op"]))
    with pytest.raises(UnresolvedOpError, match=r"Encountered unresolved custom op: Atan\..*oplet-atan-op"):
        interpreter.allocate_tensors()


def test_the_labels_are_the_digits():
    labels = (EXAMPLES / "digits" / "labels.txt").read_text().split()
    assert labels == ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def test_the_json_description_of_the_examples_is_json():
    from oplet_tools.describing.inspect import inspect_model

    for model in EXAMPLES.glob("*/*.tflite"):
        assert json.loads(json.dumps(inspect_model(model)))["file"] == str(model)
