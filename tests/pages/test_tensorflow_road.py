"""The road of the custom op tutorial, from training with TensorFlow to a profile of the custom op.

TensorFlow works in a process of its own: it is large, and what it brings of TensorFlow Lite must not meet LiteRT's package.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.places import EXAMPLES

from oplet import Interpreter, PluginManager, Profiler
from oplet.errors import UnresolvedOpError

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install -r requirements-tensorflow.txt"),
]

EXAMPLE = EXAMPLES / "atan"

#: Trains the example's model, tries to convert it both ways, and asks TensorFlow for its own answers.
WORK = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import train
import tensorflow as tf
model = train.AtanModel()
train.train(model)
refusal = train.refusal(model)
Path(sys.argv[2], "atan.tflite").write_bytes(train.convert(model))
answers = [model.predict(tf.constant(x))["y"].numpy().tolist() for x in json.loads(sys.argv[3])]
told = {"offset": float(model.offset.numpy()), "refusal": refusal, "answers": answers}
Path(sys.argv[2], "told.json").write_text(json.dumps(told))
"""

FEEDS = [[-8.0, 0.5, 2.0, 2.2, 201.0], [0.0, -1.0, 1e-3, -1e6, 3.0]]


class Trained(NamedTuple):
    """What TensorFlow's process left."""

    model: Path
    offset: float
    refusal: str
    answers: list[list[float]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("road")
    command = [sys.executable, "-c", WORK, EXAMPLE, folder, json.dumps(FEEDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return Trained(folder / "atan.tflite", **json.loads((folder / "told.json").read_text()))


def test_tensorflow_learns_the_offset(trained: Trained) -> None:
    assert trained.offset == pytest.approx(1.0, abs=1e-3)


def test_its_converter_refuses_the_op(trained: Trained) -> None:
    assert trained.refusal == "'tf.Atan' op is neither a custom op nor a flex op"


def test_without_the_plugin_the_error_names_op_and_package(trained: Trained) -> None:
    interpreter = Interpreter(trained.model, plugins=PluginManager(block=["atan_op"]))
    with pytest.raises(UnresolvedOpError, match=r"Encountered unresolved custom op: Atan\..*oplet-atan-op"):
        interpreter.allocate_tensors()


def test_with_the_plugin_it_gives_tensorflow_s_answers(trained: Trained) -> None:
    predict = Interpreter(trained.model).get_signature_runner()
    for feed, answer in zip(FEEDS, trained.answers):
        np.testing.assert_allclose(predict(x=np.array(feed, np.float32))["y"], np.array(answer, np.float32), rtol=1e-6)


def test_a_profile_shows_the_op(trained: Trained) -> None:
    profiler = Profiler()
    interpreter = Interpreter(trained.model, profiler=profiler)
    interpreter.allocate_tensors()
    for _ in range(3):
        interpreter.invoke()
    runs, seconds = profiler.by_op()["Atan"]
    assert runs == 3
    assert seconds > 0
    [atan] = [report for report in interpreter.explain() if report.op == "Atan"]
    assert atan.distribution == "oplet-atan-op"
