"""Arrays of every dtype given to tensors of every type: taken, or refused in LiteRT's words, as LiteRT does."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
from tests.children import run_child
from tests.litert.moving import moving_model
from tests.places import ROOT

from oplet import Interpreter
from oplet.builder import TensorType

TYPES = [
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT32, TensorType.UINT8, TensorType.INT64, TensorType.STRING,
    TensorType.BOOL, TensorType.INT16, TensorType.COMPLEX64, TensorType.INT8, TensorType.FLOAT64, TensorType.UINT32,
    TensorType.UINT16,
]  # fmt: skip
DTYPES = [
    "?",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
    "S4",
    "U4",
    "O",
    "M8[s]",
    "m8[s]",
    "V4",
    "g",
]
SHAPES: list[list[int]] = [[2], [], [0]]


def value(dtype: str, shape: list[int]) -> np.ndarray[Any, Any]:
    """An array of a dtype."""
    if dtype[0] in "SUO":
        texts = ["ab\0", "c"] if dtype == "O" else ["ab", "c"]
        array = np.empty(2, dtype)
        array[:] = texts if dtype == "U4" else [text.encode() for text in texts]
    else:
        array = np.zeros(2, dtype) if dtype[0] == "V" else np.ones(2, "i4").astype(dtype)
    return array[0:0] if shape == [0] else array if shape else array[:1].reshape(())


def answers(interpreter: Any, content: bytes, given: np.ndarray[Any, Any]) -> list[Any]:
    """What set_tensor and a signature runner make of a value: arrays, or the class and words of a refusal."""

    def by_index() -> np.ndarray[Any, Any]:
        runner = interpreter(model_content=content)
        runner.allocate_tensors()
        runner.set_tensor(0, given)
        runner.invoke()
        return np.asarray(runner.get_tensor(1))

    found: list[Any] = []
    for run in (by_index, lambda: np.asarray(interpreter(model_content=content).get_signature_runner()(x=given)["y"])):
        try:
            found.append(run())
        except Exception as error:
            cls = next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")
            found.append((cls, str(error)))
    return found


def cases() -> list[tuple[bytes, np.ndarray[Any, Any], str]]:
    """Models, values, and what to call the pair."""
    return [
        (moving_model(type, shape), value(dtype, shape), f"{dtype} {shape} for {type.name}")
        for type in TYPES
        for shape in SHAPES
        for dtype in DTYPES
        # LiteRT takes these as they lie in memory: an address, or UTF-32.
        if not (type is TensorType.STRING and not shape and dtype in ("U4", "O"))
    ]


_CHILD = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from ai_edge_litert.interpreter import Interpreter
from tests.litert.test_set_tensor_types import answers, cases
found = [answers(Interpreter, content, given) for content, given, _ in cases()]
with open(sys.argv[2], "wb") as file:
    pickle.dump(found, file)
"""


@pytest.mark.sweep
def test_arrays_are_taken_and_refused_as_litert_does(tmp_path: Any) -> None:
    pytest.importorskip("ai_edge_litert")
    root = str(ROOT)
    command = [sys.executable, "-c", _CHILD, root, str(tmp_path / "answers")]
    run_child(command, cwd=root, text=False)
    wrong = []
    for (content, given, what), theirs in zip(cases(), pickle.loads((tmp_path / "answers").read_bytes())):
        for way, ours, answer in zip(("set_tensor", "signature"), answers(Interpreter, content, given), theirs):
            if isinstance(answer, tuple) or isinstance(ours, tuple):
                if type(answer) is not type(ours) or ours[0] != answer[0]:
                    wrong.append(f"{what}, {way}: {ours}, LiteRT {answer}")
                elif "NOTYPE" not in answer[1] and answer[1].strip() not in ours[1]:
                    wrong.append(f"{what}, {way}: {ours[1]}, LiteRT {answer[1]}")
            elif (ours.dtype, ours.shape, ours.tolist()) != (answer.dtype, answer.shape, answer.tolist()):
                wrong.append(f"{what}, {way}: {ours!r}, LiteRT {answer!r}")
    assert not wrong, "\n".join(wrong)
