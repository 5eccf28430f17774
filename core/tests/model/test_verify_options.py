"""Options tables are checked before anything runs."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import Interpreter
from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet.schema.enums import Padding, TensorType
from oplet.schema.options import AddOptions, CastOptions, Conv2DOptions
from oplet_testing import one_op_model
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (AddOptions(fused_activation_function=77), "fused_activation_function 77.* ActivationFunctionType.* 1 .RELU."),
        (Conv2DOptions(padding=-1), "padding -1.* not one of Padding"),
        (CastOptions(in_data_type=TensorType.FLOAT32, out_data_type=100), "out_data_type 100.* not one of TensorType"),
    ],
)
def test_numbers_that_no_enumeration_has_are_refused_before_anything_runs(options: object, words: str) -> None:
    x = Spec("float32", [2])
    root = decode(tables.Model, memoryview(one_op_model("ADD", [x, x], [x], AddOptions())))
    root.subgraphs[0].operators[0].builtin_options = options
    with pytest.raises(ModelError, match=f"Node 0 .ADD. of subgraph 0 .*{words}"):
        Interpreter(model_content=encode(root))


def test_members_pass() -> None:
    x = Spec("float32", [1, 3, 3, 1])
    weights = np.ones((1, 1, 1, 1), np.float32)
    for padding in Padding:
        Interpreter(
            model_content=one_op_model("CONV_2D", [x, weights, None], [x], Conv2DOptions(padding=padding, stride_w=1, stride_h=1))
        )


def test_a_shape_of_zeros_and_more_than_any_memory_holds_is_refused() -> None:
    root = decode(tables.Model, memoryview(one_op_model("NEG", [Spec("float32", [2])], [Spec("float32", [2])])))
    shape = np.array([0, *[2**31 - 1] * 4], np.int32)
    for tensor in root.subgraphs[0].tensors:
        tensor.shape = shape
    with pytest.raises(ModelError, match=r"number of elements overflowed.*\[0, 2147483647,"):
        Interpreter(model_content=encode(root))


def test_an_empty_tensor_that_a_later_node_writes_is_out_of_order() -> None:
    x, empty = Spec("float32", [2]), Spec("float32", [0, 2])
    nodes = [Op("NEG", "a", "y"), Op("ABS", "x", "a")]
    model = graph_model(Graph({"x": x, "a": empty, "y": x}, "x", "y", nodes))
    with pytest.raises(ModelError, match=r"Node 0 .NEG. .* reads tensor 1 .* which node 1 writes only later"):
        Interpreter(model_content=model)
