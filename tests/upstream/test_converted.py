"""What TensorFlow's tests of `tf.lite` convert and run, in our own words: `convert` makes a model of each kind with the converter of
today's TensorFlow, and oplet's answers are LiteRT's, and TensorFlow's within what quantization takes.

`tensorflow_tests.csv` says for each of TensorFlow's tests which case here stands for it, or why none does.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType
from tests.litert.test_api import METHODS, difference
from tests.places import ROOT

from oplet import Interpreter

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install -r requirements-tensorflow.txt"),
]

#: LiteRT's ways that are asked; the reference kernels lack some of the operators.
WAYS = (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.BUILTIN, OpResolverType.BUILTIN_REF)

#: How many kinds of models there are.
CASES = 53

Feeds = dict[str, dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("converted")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "tests.upstream.convert", folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return sorted(folder.glob("*.tflite"))


def filed(path: Path) -> tuple[Feeds, dict[str, list[np.ndarray]], float]:
    """A case's feeds and TensorFlow's answers, by signature, and how far these may be."""
    feeds: Feeds = {}
    answers: dict[str, list[np.ndarray]] = {}
    with np.load(path.with_suffix(".npz"), allow_pickle=True) as arrays:
        for name in arrays.files:
            role, _, rest = name.partition(".")
            key, _, inner = rest.rpartition(".")
            if role == "in":
                feeds.setdefault(key, {})[inner] = arrays[name]
            elif role == "out":
                answers.setdefault(key, []).append(arrays[name])
        return feeds, answers, float(arrays["within"])


def run(interpreter: Any, key: str, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A signature's answers; floats for a quantized input are quantized before, and answers as they come."""
    signature = interpreter.get_signature_runner(key)
    given = {}
    for name, detail in signature.get_input_details().items():
        value = feeds[name]
        if detail["dtype"] in (np.int8, np.uint8, np.int16):
            scale, zero = detail["quantization"]
            limits = np.iinfo(detail["dtype"])
            value = np.clip(np.round(value / scale) + zero, limits.min, limits.max).astype(detail["dtype"])
        given[name] = value
    return signature(**given)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """How far two answers are from one another, relative to the larger values; infinite where types or shapes differ."""
    if one.dtype.kind != other.dtype.kind or one.shape != other.shape:
        return np.inf
    if one.dtype.kind not in "fiu":
        return 0.0 if np.array_equal(one, other) else np.inf
    size = max(1.0, float(np.abs(other.astype(np.float64)).max(initial=0))) if one.dtype.kind == "f" else 1.0
    return float(np.abs(one.astype(np.float64) - other).max(initial=0)) / size


def dequantized(value: np.ndarray, detail: dict[str, Any]) -> np.ndarray:
    """An answer in the units of the model before it was quantized."""
    scale, zero = detail["quantization"]
    return (value.astype(np.float64) - zero) * scale if scale else value


def opened(content: bytes, way: OpResolverType) -> LiteRT | None:
    """LiteRT's interpreter; None if this way has no kernel for one of the operators."""
    try:
        return LiteRT(model_content=content, experimental_op_resolver_type=way)
    except ValueError:
        return None


def wrong(path: Path) -> list[str]:
    """What differs from LiteRT, or from TensorFlow by more than it may."""
    feeds, answers, within = filed(path)
    content = path.read_bytes()
    judges = [judge for way in WAYS if (judge := opened(content, way)) is not None]
    ours = Interpreter(model_content=content)
    found = [d for m in METHODS if (d := difference(getattr(ours, m)(), getattr(judges[0], m)(), m))]
    for key in ours.get_signature_list():
        mine = run(ours, key, feeds.get(key, {}))
        theirs = []
        for judge in judges:
            try:
                theirs.append(run(judge, key, feeds.get(key, {})))
            except (RuntimeError, ValueError):  # this way has no kernel for it
                continue
        details = ours.get_signature_runner(key).get_output_details()
        for name, value in mine.items():
            nearest = min(apart(value, other[name]) for other in theirs)
            if nearest > (1e-5 if value.dtype.kind == "f" else 0):
                found.append(f"{key}: {name} is {nearest} from LiteRT's nearest way")
        told = [dequantized(mine[name], details[name]) for name in sorted(mine)]
        for value in told:
            nearest = min(_error(value, answer) for answer in answers[key])
            if nearest > within:
                found.append(f"{key}: an output is {nearest} from TensorFlow's")
    return found


def _error(value: np.ndarray, answer: np.ndarray) -> float:
    if value.shape != answer.shape:
        return np.inf
    if answer.dtype.kind not in "fiu":
        return 0.0 if [bytes(v) for v in value.flat] == [bytes(v) for v in answer.flat] else np.inf
    return float(np.abs(value.astype(np.float64) - answer).max(initial=0)) / max(1.0, float(np.abs(answer).max(initial=0)))


def test_converted_models_answer_as_with_litert_and_as_in_tensorflow(converted: list[Path]) -> None:
    assert len(converted) == CASES
    found = {path.stem: problems for path in converted if (problems := wrong(path))}
    assert not found, "\n".join(f"{name}: {p}" for name, problems in found.items() for p in problems)
