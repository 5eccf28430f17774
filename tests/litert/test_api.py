"""The drop-in promise: what LiteRT's interpreter says about a model, oplet's says in the same words, keys, order and dtypes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType
from tests.places import EXAMPLES
from tests.recorded_cases import chosen, every_group, here

from oplet import Interpreter
from oplet.errors import OpletError

MODELS = sorted(EXAMPLES.rglob("*.tflite"))
METHODS = (
    "get_input_details",
    "get_output_details",
    "get_tensor_details",
    "get_signature_list",
    "_get_full_signature_list",
    "_get_ops_details",
    "num_subgraphs",
)


def difference(ours: Any, theirs: Any, where: str) -> str:
    """Where two descriptions differ, by value, type or order; "" if nowhere."""
    if type(ours) is not type(theirs):
        return f"{where}: {type(ours)} is not {type(theirs)}"
    if isinstance(ours, dict):
        if list(ours) != list(theirs):
            return f"{where}: keys {list(ours)} are not {list(theirs)}"
        return next(filter(None, (difference(ours[k], theirs[k], f"{where}/{k}") for k in ours)), "")
    if isinstance(ours, (list, tuple)):
        if len(ours) != len(theirs):
            return f"{where}: {len(ours)} entries are not {len(theirs)}"
        return next(filter(None, (difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(ours, theirs)))), "")
    if isinstance(ours, np.ndarray):
        same = (
            ours.dtype == theirs.dtype
            and ours.shape == theirs.shape
            and np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f")
        )
        return "" if same else f"{where}: {ours!r} is not {theirs!r}"
    return "" if ours == theirs else f"{where}: {ours!r} is not {theirs!r}"


def differences(content: bytes) -> list[str]:
    try:
        ours = Interpreter(model_content=content)
    except OpletError:
        return []  # what is refused is another test's promise
    theirs = LiteRT(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    return [d for m in METHODS if (d := difference(getattr(ours, m)(), getattr(theirs, m)(), m))]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_the_examples_are_described_as_litert_describes_them(path: Path) -> None:
    assert not differences(path.read_bytes())


@here
@pytest.mark.sweep(cases=True)
@every_group
def test_recorded_models_are_described_as_litert_describes_them(group: Path) -> None:
    wrong = [f"{case.name}: {d}" for case in chosen(group) for d in differences(case.model())]
    assert not wrong, "\n".join(wrong[:20])


def both(content: bytes, action: Any) -> tuple[BaseException | None, BaseException | None]:
    """What each interpreter raises when it is given something wrong."""
    caught: list[BaseException | None] = []
    for cls in (Interpreter, LiteRT):
        interpreter = cls(model_content=content)
        try:
            action(interpreter)
            caught.append(None)
        except Exception as error:
            caught.append(error)
    return caught[0], caught[1]


MISTAKES = {
    "set_tensor before allocate": lambda i: i.set_tensor(i.get_input_details()[0]["index"], np.zeros(i.get_input_details()[0]["shape"], np.float32)),
    "get_tensor before allocate": lambda i: i.get_tensor(0),
    "invoke before allocate": lambda i: i.invoke(),
    "tensor index": lambda i: i.get_tensor(999),
    "set_tensor index": lambda i: i.set_tensor(999, np.zeros(1, np.float32)),
    "subgraph index": lambda i: i.get_tensor(0, 5),
    "details of a subgraph": lambda i: i.get_tensor_details(5),
    "dtype": lambda i: i.set_tensor(i.get_input_details()[0]["index"], np.zeros(i.get_input_details()[0]["shape"], np.float64)),
    "rank": lambda i: (i.allocate_tensors(), i.set_tensor(i.get_input_details()[0]["index"], np.zeros((1, 1, 1, 1, 1, 1), np.float32))),
    "signature": lambda i: i.get_signature_runner("nope"),
    "resize of a tensor that is not there": lambda i: i.resize_tensor_input(999, [1]),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_the_same_class_and_says_what_litert_says(mistake: str) -> None:
    ours, theirs = both((EXAMPLES / "digits/digits_float32.tflite").read_bytes(), MISTAKES[mistake])
    assert ours is not None
    assert theirs is not None
    assert isinstance(ours, type(theirs))
    if "subgraph.cc" not in str(theirs):  # a line of C++ tells nobody anything
        assert str(theirs).strip() in str(ours)


@pytest.mark.parametrize("name", ["digits_float32.tflite", "none.tflite", ""])
def test_a_path_of_bytes_is_opened_or_refused_as_the_same_path_of_text(name: str) -> None:
    ends = []
    for cls in (Interpreter, LiteRT):
        for path in (os.fspath(EXAMPLES / "digits" / name), os.fsencode(EXAMPLES / "digits" / name)):
            try:
                ends.append(cls(path).get_input_details()[0]["name"])
            except ValueError as error:
                ends.append(str(error) if cls is Interpreter else "refused")
    text, binary, theirs, also = ends
    assert text == binary
    assert theirs == also == (text if name.startswith("digits") else "refused")
