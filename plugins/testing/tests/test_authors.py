"""What authors of kernels guess: types as numpy dtypes, shapes as numbers, shapes that change in the run; told or taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Context, MutableOpResolver, Node, Registration, TensorBuilder, TensorType, ensure_type
from oplet.errors import InvokeError, OpletError, PrepareError
from oplet.ops.context import EnsureError
from oplet.ops.tensor import Quantization
from oplet_testing import OpContract, Spec, call_op, one_op_model

X = np.arange(4, dtype=np.float32)


def call(prepare: Callable[[Context, Node], Any], invoke: Callable[[Context, Node], Any] = lambda context, node: None) -> Any:
    def prepared(context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)
        prepare(context, node)

    resolver = MutableOpResolver()
    resolver.add_custom("Guess", Registration(prepare=prepared, invoke=invoke))
    [y] = call_op("Guess", [X], [Spec("float32", [4])], op_resolver=resolver, plugins=[])
    return y


@pytest.mark.parametrize("type", [TensorType.INT8, np.int8, "int8", np.dtype("int8")])
def test_types_may_be_numpy_dtypes(type: Any) -> None:
    def prepare(context: Context, node: Node) -> None:
        ensure_type(node.inputs[0], type, np.float32)
        context.set_type(node.outputs[0], type)
        assert context.add_temporary(node, [2, 3], type).type is TensorType.INT8
        added = context.tensors[context.add_tensor(TensorBuilder(type))]
        assert (added.type, added.dtype) == (TensorType.INT8, np.int8)

    def invoke(context: Context, node: Node) -> None:
        assert node.temporaries[0].data.dtype == np.int8
        node.outputs[0].data[...] = 3

    y = call(prepare, invoke)
    assert (y.dtype, y.tolist()) == (np.int8, [3, 3, 3, 3])
    with pytest.raises(PrepareError, match=r"is of type FLOAT32, this op takes INT8 here"):
        call(lambda context, node: ensure_type(node.inputs[0], type))


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda c, n: c.add_temporary(n, 4), r"cannot take 4 as its shape; a shape is a sequence of sizes, such as \(2, 3\)"),
        (lambda c, n: c.resize_tensor(n.outputs[0], 4), "cannot take 4 as its shape"),
        (lambda c, n: c.resize_tensor(n.outputs[0], [2.5]), r"cannot take the shape \[2\.5\]: a dimension is a whole number"),
        (lambda c, n: c.add_temporary(n, (4,), "float31"), "'float31' is no type of tensors; give a TensorType or a numpy dtype"),
        (lambda c, n: c.set_type(n.outputs[0], "float31"), "'float31' is no type of tensors"),
        (lambda c, n: ensure_type(n.inputs[0], "float31"), "'float31' is no type of tensors"),
        (
            lambda c, n: c.add_temporary(n, (4,), allocation="persistent"),
            "of allocation type 'persistent'; ARENA, PERSISTENT and DYNAMIC",
        ),
        (lambda c, n: n.inputs[0].data, "constants alone have values in `prepare`"),
    ],
)
def test_what_prepare_cannot_ask_for_is_told(prepare: Any, message: str) -> None:
    with pytest.raises(OpletError, match=message):
        call(prepare)


def test_a_shape_that_changes_in_the_run_must_have_been_announced() -> None:
    def invoke(context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], (2,))
        node.outputs[0].data[...] = 1

    with pytest.raises((InvokeError, PrepareError), match=r"cannot take the shape \[2\] while the graph runs; .*set_dynamic"):
        call(lambda context, node: None, invoke)
    assert call(lambda context, node: context.set_dynamic(node.outputs[0]), invoke).tolist() == [1, 1]


def test_scales_come_in_a_shape_that_goes_with_the_values() -> None:
    scales, zero_points = np.array([1, 2, 3], np.float32), np.array([0, 1, 2], np.int64)
    for axis, shape in ((0, (3, 1, 1)), (2, (1, 1, 3))):
        found = Quantization(scales, zero_points, axis).broadcast(3)
        assert [each.shape for each in found] == [shape, shape]
        assert [each.reshape(-1).tolist() for each in found] == [[1, 2, 3], [0, 1, 2]]
    assert [each.shape for each in Quantization(scales[:1], zero_points[:1], 5).broadcast(3)] == [(), ()]
    with pytest.raises(EnsureError, match="along dimension 3 of 3"):
        Quantization(scales, zero_points, 3).broadcast(3)
    with pytest.raises(EnsureError, match="by blocks"):
        Quantization(scales, zero_points, 0, 32).broadcast(3)


class Above(OpContract):
    """The size of its answer differs between `inputs` and `other_inputs`."""

    model = one_op_model("Above", [Spec("float32", [4])], [Spec("float32", [4])])
    inputs = (np.array([1, -1, 1, -1], np.float32),)
    other_inputs = (np.array([1, -1, -1, -1], np.float32),)
    op_resolver = MutableOpResolver()
    op_resolver.add_custom(
        "Above",
        Registration(
            prepare=lambda context, node: context.set_dynamic(node.outputs[0]),
            invoke=lambda context, node: _positive(context, node),
        ),
    )


def _positive(context: Context, node: Node) -> None:
    found = node.inputs[0].data[node.inputs[0].data > 0]
    context.resize_tensor(node.outputs[0], found.shape)
    node.outputs[0].data[...] = found


def test_an_op_whose_size_depends_on_values_keeps_the_contract() -> None:
    Above().test_outputs_are_written_not_replaced()


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("model", None, r"Wrong\.model is missing; give it the bytes of a model"),
        ("model", "x", r"Wrong\.model is of the type str"),
        ("inputs", None, r"Wrong\.inputs is missing; give it a list with a numpy array for each input"),
        ("inputs", X, r"Wrong\.inputs is of the type ndarray"),
        ("inputs", [[1.0, 2.0]], r"Wrong\.inputs is a list of list"),
        ("resized", X, r"Wrong\.resized is of the type ndarray"),
    ],
)
def test_a_contract_says_what_it_lacks(attribute: str, value: Any, message: str) -> None:
    wrong = type("Wrong", (Above,), {attribute: value})()
    with pytest.raises(AssertionError, match=message):
        wrong.test_two_interpreters_know_nothing_of_each_other()
