"""Arguments of a wrong kind, to everything public of `oplet.builder` and `oplet_testing`: one sentence of oplet, no traceback from within."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.builder import (
    ModelBuilder,
    SubgraphBuilder,
    TensorType,
    options_class,
    pack_flexbuffer,
    pack_strings,
    pack_values,
    sparsify,
)
from oplet.errors import ModelError, OpletError
from oplet_testing import Graph, Op, Spec, call_op, graph_model, one_op_model, run_op

X = Spec("float32", [2])
#: Values of many kinds; most are wrong wherever they stand.
KINDS: list[Any] = [
    None, 3, -1, 2**70, 1.5, float("nan"), True, "x", "", "ADD", b"abc", object(), int, lambda: 0, [], [None], ["x"], [2**70], [[1], [1, 2]],
    {}, {"x": 1}, {"x": "y"}, {1: 2}, (1, 2, 3), np.zeros(3), np.zeros((0, 2)), np.array([object()]), np.int64(1),
]  # fmt: skip


def graph() -> SubgraphBuilder:
    """A builder with tensors 0 and 1."""
    made = ModelBuilder("small").add_subgraph()
    for name in "xy":
        made.add_tensor(name, "float32", [2])
    return made


def written(function: Callable[..., Any]) -> Callable[..., None]:
    """The function, and then the model is written: what was let through has to fit into the file."""

    def call(*given: Any, **named: Any) -> None:
        function(*given, **named)
        owner = function.__self__  # type: ignore[attr-defined]
        model = owner if isinstance(owner, ModelBuilder) else owner.model
        for each in model.subgraphs:
            if each.table.inputs is None:
                each.set_inputs()
            if each.table.outputs is None:
                each.set_outputs()
        model.to_bytes()

    return call


ADD_TENSOR = [
    "data", "buffer", "external_buffer", "scale", "zero_point", "quantized_dimension", "minimum", "maximum", "details", "quantization",
    "shape_signature", "sparsity", "is_variable", "variant_tensors",
]  # fmt: skip
ADD_OPERATOR = ["options", "version", "custom", "custom_options", "intermediates", "mutating_variable_inputs"]
#: By name: what makes the function, its arguments, and the names of those that it may be given besides.
FUNCTIONS: dict[str, tuple[Callable[[], Callable[..., Any]], list[Any], list[str]]] = {
    "ModelBuilder": (lambda: ModelBuilder, ["d"], ["minimum_runtime", "runtime_versions"]),
    "from_model": (lambda: ModelBuilder.from_model, [None], []),
    "add_subgraph": (lambda: written(graph().model.add_subgraph), ["n"], []),
    "add_buffer": (lambda: written(graph().model.add_buffer), [b"x"], []),
    "buffer_size": (lambda: graph().model.buffer_size, [0], []),
    "add_external_buffer": (lambda: written(graph().model.add_external_buffer), ["g", b"x", ""], []),
    "external_size": (lambda: graph().model.external_size, [0], []),
    "add_operator_code": (lambda: written(graph().model.add_operator_code), ["ADD", 1], []),
    "add_signature": (lambda: written(graph().model.add_signature), ["k", {"x": 0}, {"y": 1}, 0], []),
    "add_metadata": (lambda: written(graph().model.add_metadata), ["k", b"x"], []),
    "add_tensor": (lambda: written(graph().add_tensor), ["n", "float32", [2]], ADD_TENSOR),
    "add_operator": (lambda: written(graph().add_operator), ["RELU", [0], [1]], ADD_OPERATOR),
    "add_operator, custom": (lambda: written(graph().add_operator), ["Mine", [0], [1]], ADD_OPERATOR),
    "set_inputs": (lambda: written(graph().set_inputs), [0], []),
    "set_outputs": (lambda: written(graph().set_outputs), [0], []),
    "pack_values": (lambda: pack_values, [[1], TensorType.INT8], []),
    "pack_strings": (lambda: pack_strings, [["a"]], []),
    "pack_flexbuffer": (lambda: pack_flexbuffer, [{"a": 1}], []),
    "sparsify": (lambda: sparsify, [np.eye(4)], ["format", "traversal_order", "block_map", "block_size"]),
    "options_class": (lambda: options_class, ["ADD"], []),
    "Spec": (
        lambda: lambda *given, **named: one_op_model("RELU", [Spec(*given, **named)], [X]),
        ["float32", [2]],
        ["scale", "zero_point", "axis", "data", "signature", "variable", "sparsity"],
    ),
    "one_op_model": (lambda: one_op_model, ["RELU", [X], [X]], ["options", "version", "custom_options", "intermediates"]),
    "an input of one_op_model": (lambda: lambda value: one_op_model("RELU", [value], [X]), [X], []),
    "an output of one_op_model": (lambda: lambda value: one_op_model("RELU", [X], [value]), [X], []),
    "call_op": (
        lambda: call_op,
        ["Mine", [np.zeros(2, np.float32)], [X]],
        ["options", "version", "custom_options", "intermediates"],
    ),
    "run_op": (lambda: run_op, [one_op_model("Mine", [X], [X]), np.zeros(2, np.float32)], ["resize"]),
    "graph_model": (lambda: graph_model, [Graph({"x": X, "y": X}, "x", "y", [Op("RELU", "x", "y")])], ["signatures"]),
    "Graph": (lambda: lambda *given: graph_model(Graph(*given)), [{"x": X, "y": X}, "x", "y", [Op("RELU", "x", "y")], "n"], []),
    "Op": (
        lambda: lambda *given: graph_model(Graph({"x": X, "y": X}, "x", "y", [Op(*given)])),
        ["RELU", "x", "y", None, b""],
        [],
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_kind_of_argument_is_one_sentence(name: str) -> None:
    make, arguments, more = FUNCTIONS[name]
    refused: list[str] = []
    for place in [*range(len(arguments)), *more]:
        for value in KINDS:
            given: list[Any] = list(arguments)
            named = {}
            if isinstance(place, int):
                given[place] = value
            else:
                named[place] = value
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    make()(*given, **named)
            except OpletError as error:
                refused.append(str(error))
            except Exception as error:
                raise AssertionError(f"{name} with {value!r} as {place} raises {type(error).__name__}: {error}") from error
    assert refused
    assert not [text for text in refused if len(text) > 600 or "\n" in text]


def test_the_sentence_names_the_function_the_argument_and_the_value() -> None:
    with pytest.raises(
        ModelError, match=r"^add_tensor takes a list of sizes, None or -1 for one that is free as shape, not 3 \(int\)\.$"
    ):
        graph().add_tensor("x", "float32", 3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"^Op takes names separated by blanks as inputs, not \['a', 'k'\] \(list\)\.$"):
        graph_model(Graph({"a": X, "k": X}, "a", "k", [Op("ADD", ["a", "k"], "k")]))  # type: ignore[arg-type]
    with pytest.raises(
        ModelError, match=r"^'float31' is no type of tensors; give a TensorType or a numpy dtype, such as 'int8'\.$"
    ):
        one_op_model("RELU", [Spec("float31", [2])], [X])
