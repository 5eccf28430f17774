"""`shape_signature` of details is LiteRT's, whatever the file states and whatever size the inputs have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from oplet import Interpreter, ModelBuilder

litert = pytest.importorskip("ai_edge_litert.interpreter")


def model(signature: Sequence[int] | None) -> bytes:
    """ABS of a picture, whose input and output have this signature."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, "float32", [1, 4, 4, 3], shape_signature=signature) for name in "xy")
    graph.add_operator("ABS", [x], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


def told(interpreter: Any, shapes: Sequence[Sequence[int]]) -> list[list[list[int]]]:
    """The signatures and shapes of input and output: as opened, and after each resize."""
    found = []
    for shape in ([1, 4, 4, 3], *shapes):
        interpreter.resize_tensor_input(0, shape)
        interpreter.allocate_tensors()
        details = [*interpreter.get_input_details(), *interpreter.get_output_details()]
        found.append([entry[key].tolist() for entry in details for key in ("shape", "shape_signature")])
    return found


@pytest.mark.parametrize("signature", [None, [1, 4, 4, 3], [-1, 4, 4, 3], [-1, -1, -1, 3], [1, 9, 9, 3]])
def test_signatures_are_litert_s_before_and_after_resizes(signature: Sequence[int] | None) -> None:
    content, shapes = model(signature), [[2, 4, 4, 3], [1, 7, 5, 3], [1, 4, 4, 3]]
    assert told(Interpreter(model_content=content), shapes) == told(litert.Interpreter(model_content=content), shapes)


def tried(interpreter: Any, steps: Sequence[tuple[Sequence[int], bool]]) -> list[list[int] | None]:
    """The input's shape after each resize, strict or not; None where it was refused."""
    found: list[list[int] | None] = []
    for shape, strict in steps:
        try:
            interpreter.resize_tensor_input(0, shape, strict=strict)
            found.append(interpreter.get_input_details()[0]["shape"].tolist())
        except RuntimeError:
            found.append(None)
    return found


@pytest.mark.parametrize("signature", [None, [1, 4, 4, 3], [-1, 4, 4, 3], [-1, -1, -1, 3], [1, 9, 9, 3], [-1, 9, 9, 3]])
def test_strict_resizes_look_at_the_signature_and_not_at_what_other_resizes_left(signature: Sequence[int] | None) -> None:
    content, shapes = model(signature), [[2, 4, 4, 3], [2, 9, 9, 3], [1, 7, 5, 3], [1, 4, 4, 3], [2, 4, 4]]
    for before in shapes:
        for shape in shapes:
            steps = [(before, False), (shape, True), (shapes[0], True)]
            assert tried(Interpreter(model_content=content), steps) == tried(litert.Interpreter(model_content=content), steps)
