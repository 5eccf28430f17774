"""A node that announces options and has none, as some converters write them, is rewritten and runs as before."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from oplet import BuiltinOperator, Interpreter, Model, ModelBuilder
from oplet.model.builders.operator_options import options_class
from oplet_testing import litert_interpreter
from oplet_tools.rewriting.rewrite import rewrite

WITH_OPTIONS = [op for op in BuiltinOperator if op is not BuiltinOperator.CUSTOM and options_class(op) is not None]
#: The members of Operator that say the kind of options and where they are: of `builtin_options` and of `builtin_options_2`.
_VALUES = (4, 12)


def table_at(data: bytes, at: int, field: int) -> int:
    """The position of a field of the table at a position; 0 if it has none."""
    vtable = at - struct.unpack_from("<i", data, at)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * field)[0] if 4 + 2 * field < size else 0
    return at + offset if offset else 0


def followed(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])


def without_options(content: bytes) -> bytes:
    """The model, whose only operator keeps the kind of its options and loses their value."""
    data = bytearray(content)
    root = followed(data, 0)
    subgraph = followed(data, followed(data, table_at(data, root, 2)) + 4)
    operator = followed(data, followed(data, table_at(data, subgraph, 3)) + 4)
    vtable = operator - struct.unpack_from("<i", data, operator)[0]
    fields = (struct.unpack_from("<H", data, vtable)[0] - 4) // 2
    for field in _VALUES:
        if field < fields:
            struct.pack_into("<H", data, vtable + 4 + 2 * field, 0)
    return bytes(data)


def model(op: BuiltinOperator, **options: Any) -> bytes:
    builder = ModelBuilder(minimum_runtime=False)
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", "float32", [1, 4, 4, 2]), graph.add_tensor("y", "float32", [1, 6, 6, 2])
    pads = graph.add_tensor("pads", "int32", [4, 2], data=np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    cls = options_class(op)
    assert cls is not None
    graph.add_operator(op, [x, pads], [y], options=cls(), version=1)
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


@pytest.mark.parametrize("op", WITH_OPTIONS, ids=lambda op: op.name)
def test_nothing_is_lost_where_they_are_left_out(op: BuiltinOperator) -> None:
    whole = model(op)
    absent = without_options(whole)
    assert absent != whole
    opened = Model.from_bytes(absent)
    assert opened.unknown == ()
    again = Model.from_bytes(opened.to_bytes())
    [[node]] = [subgraph.operators for subgraph in again.root.subgraphs]
    assert (node.builtin_options, node.builtin_options_2) == (None, None)
    assert again.op_of(node)[0] is op


def test_a_rewritten_model_answers_as_before_in_oplet_and_in_litert() -> None:
    absent = without_options(model(BuiltinOperator.PAD))
    changed, _ = rewrite(Model.from_bytes(absent))
    value = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)
    for make in (Interpreter, litert_interpreter("BUILTIN_WITHOUT_DEFAULT_DELEGATES")):
        answers = []
        for content in (absent, changed.to_bytes()):
            interpreter = make(model_content=content)
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, value)
            interpreter.invoke()
            answers.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        np.testing.assert_array_equal(*answers)
        assert answers[0].shape == (1, 6, 6, 2)
