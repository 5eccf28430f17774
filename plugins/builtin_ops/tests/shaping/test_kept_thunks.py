"""Nodes whose shapes depend on values are bound again where these change, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.schema.enums import MirrorPadMode, TensorType
from oplet.schema.options import ArgMaxOptions, MirrorPadOptions, OneHotOptions, SplitOptions
from oplet_testing import invoke_steps, one_op_model
from oplet_testing.one_op import Spec

I32 = np.int32
IMAGE = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
ROWS = np.arange(12, dtype=np.float32).reshape(2, 6)

#: For each operator: its inputs, of which the model knows none, and other values of one of them that give other outputs.
CASES: dict[str, tuple[list[Any], int, Any, Any]] = {
    "RESHAPE": ([ROWS, np.array([3, 4], I32)], 1, np.array([4, 3], I32), None),
    "TRANSPOSE": ([ROWS, np.array([1, 0], I32)], 1, np.array([0, 1], I32), None),
    "TILE": ([ROWS, np.array([1, 2], I32)], 1, np.array([2, 1], I32), None),
    "FILL": ([np.array([2, 2], I32), np.array(3, np.float32)], 0, np.array([4, 1], I32), None),
    "BROADCAST_TO": ([ROWS[:1], np.array([2, 6], I32)], 1, np.array([3, 6], I32), None),
    "PAD": ([ROWS, np.array([[1, 0], [0, 2]], I32)], 1, np.array([[0, 1], [2, 0]], I32), None),
    "MIRROR_PAD": (
        [ROWS, np.array([[1, 0], [0, 2]], I32)], 1, np.array([[0, 1], [2, 0]], I32), MirrorPadOptions(mode=MirrorPadMode.REFLECT)
    ),
    "SUM": ([ROWS, np.array([0], I32)], 1, np.array([1], I32), None),
    "ARG_MAX": ([ROWS, np.array([0], I32)], 1, np.array([1], I32), ArgMaxOptions(output_type=TensorType.INT64)),
    "TOPK_V2": ([ROWS, np.array(2, I32)], 1, np.array(3, I32), None),
    "RANGE": ([np.array(1, I32), np.array(9, I32), np.array(2, I32)], 0, np.array(2, I32), None),
    "ONE_HOT": (
        [np.array([1, 0, 3], I32), np.array(4, I32), np.array(2, np.float32), np.array(0, np.float32)],
        1, np.array(2, I32), OneHotOptions(axis=-1),
    ),
    "SCATTER_ND": ([np.array([[1], [3]], I32), ROWS[:, :2], np.array([4, 2], I32)], 2, np.array([5, 2], I32), None),
    "SEGMENT_SUM": ([ROWS, np.array([0, 0], I32)], 1, np.array([0, 1], I32), None),
    "SPACE_TO_BATCH_ND": (
        [IMAGE, np.array([2, 2], I32), np.zeros((2, 2), I32)], 1, np.array([2, 4], I32), None,
    ),
    "BATCH_TO_SPACE_ND": (
        [IMAGE.reshape(4, 2, 2, 1), np.array([2, 2], I32), np.zeros((2, 2), I32)], 2, np.array([[1, 0], [0, 2]], I32), None,
    ),
    "SPLIT": ([np.array(0, I32), ROWS], 0, np.array(1, I32), SplitOptions(num_splits=2)),
    "RESIZE_BILINEAR": ([IMAGE, np.array([2, 8], I32)], 1, np.array([8, 2], I32), None),
}  # fmt: skip

#: The types of the outputs of those that do not give one tensor of floats.
TYPES = {"ARG_MAX": ["int64"], "TOPK_V2": ["float32", "int32"], "RANGE": ["int32"], "SPLIT": ["float32", "float32"]}


@pytest.mark.parametrize("op", CASES)
def test_other_values_give_what_a_fresh_interpreter_gives(op: str) -> None:
    inputs, place, other, options = CASES[op]
    changed = [*inputs[:place], other, *inputs[place + 1 :]]
    moved = [value + np.float32(1) if value.dtype == np.float32 else value for value in inputs]
    outputs = [Spec(type, [1]) for type in TYPES.get(op, ["float32"])]
    specs = [Spec(value.dtype, value.shape) for value in inputs]
    model = one_op_model(op, specs, outputs, options, version=2 if op == "BROADCAST_TO" else 1)
    feeds = [inputs, inputs, changed, changed, inputs, moved, changed, inputs]
    seen = invoke_steps(Interpreter(model_content=model), feeds)
    for feed, found in zip(feeds, seen):
        [wanted] = invoke_steps(Interpreter(model_content=model), [feed])
        for ours, fresh in zip(found, wanted):
            assert (ours.dtype, ours.shape) == (fresh.dtype, fresh.shape)
            np.testing.assert_array_equal(ours, fresh)
    assert any(not np.array_equal(a, b) or a.shape != b.shape for a, b in zip(seen[0], seen[2]))


def test_a_resized_input_gives_what_a_fresh_interpreter_gives() -> None:
    model = one_op_model("TILE", [Spec("float32", [2, 3]), Spec("int32", [2])], [Spec("float32", [1])])
    times = np.array([2, 1], np.int32)
    interpreter = Interpreter(model_content=model)
    for rows in (2, 5, 2):
        interpreter.resize_tensor_input(0, [rows, 3])
        values = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        for _ in range(2):
            [[tiled]] = invoke_steps(interpreter, [(values, times)])
            np.testing.assert_array_equal(tiled, np.tile(values, (2, 1)))
