"""What a kernel keeps between prepares: as long as the constants that it is made from, and no longer."""

from __future__ import annotations

import numpy as np
from core.tests.chains import F32, answer, like_input

from oplet import Allocation, Context, Interpreter, ModelBuilder, MutableOpResolver, Node, Registration
from oplet.ops.tensor import Tensor
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet_testing import Spec, one_op_model


def node_of(*inputs: Tensor | None) -> Node:
    return Node(0, BuiltinOperator.CUSTOM, "Keep", 1, inputs, [])


def constant(*values: float) -> Tensor:
    tensor = Tensor(0, "", TensorType.FLOAT32, (len(values),), allocation=Allocation.COMPUTED)
    tensor.set_memory(np.array(values, F32))
    return tensor


def test_a_value_is_kept_while_its_sources_are_the_same_constants() -> None:
    source, node = constant(1, 2), node_of()
    first = node.cached("sum", [source, None], lambda: [source.data.sum()])
    assert node.cached("sum", [source, None], lambda: [source.data.sum()]) is first
    assert node.cached("other", [source, None], lambda: [source.data.sum()]) is not first
    source.set_memory(np.array([1, 2], F32))  # equal, but another constant
    second = node.cached("sum", [source, None], lambda: [source.data.sum()])
    assert second is not first
    assert node.cached("sum", [source, constant(3)], lambda: [0]) is not second


def test_nothing_is_kept_of_what_is_no_constant() -> None:
    source, node = constant(1, 2), node_of()
    node.cached("sum", [source], lambda: float(source.data.sum()))
    source.allocation = Allocation.ARENA
    for value in (4.0, 5.0):
        source.data[:] = value
        assert node.cached("sum", [source], lambda: float(source.data.sum())) == 2 * value
    source.allocation = Allocation.COMPUTED
    assert node.cached("sum", [source], lambda: float(source.data.sum())) == 10


def test_the_cache_moves_with_a_node_that_another_kernel_serves_meanwhile() -> None:
    source, node = constant(1, 2), node_of()
    first = node.cached("sum", [source], lambda: [source.data.sum()])
    saved, node.kernel_cache = node.kernel_cache, (None, None)
    assert node.cached("sum", [source], lambda: [source.data.sum()]) is not first
    node.kernel_cache = saved
    assert node.cached("sum", [source], lambda: [source.data.sum()]) is first


def counting_model() -> tuple[bytes, MutableOpResolver]:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, size, y = graph.add_tensor("x", F32, [-1]), graph.add_tensor("size", "int32", [1]), graph.add_tensor("y", F32, [-1])
    graph.add_operator("Size", [x], [size])
    graph.add_operator("Scale", [x, size], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)

    def say_size(context: Context, node: Node) -> None:
        context.set_constant(node.outputs[0], np.array([node.inputs[0].size], np.int32))

    def scale(context: Context, node: Node) -> None:
        factor = node.cached("factor", [node.inputs[1]], lambda: F32(node.inputs[1].data[0]))
        np.multiply(node.inputs[0].data, factor, node.outputs[0].data)

    ops = MutableOpResolver()
    ops.add_custom("Size", Registration(prepare=say_size, invoke=lambda context, node: None))
    ops.add_custom("Scale", Registration(prepare=like_input, invoke=scale))
    return builder.to_bytes(), ops


def test_what_is_made_from_a_shape_is_made_anew_after_a_resize() -> None:
    content, ops = counting_model()
    interpreter = Interpreter(model_content=content, op_resolver=ops, plugins=[])
    for size in (3, 5, 2, 3):
        assert answer(interpreter, np.ones(size, F32)) == [size] * size


def test_a_persistent_temporary_of_another_shape_does_not_come_back_with_its_old_value() -> None:
    def prepare(context: Context, node: Node) -> None:
        like_input(context, node)
        context.add_temporary(node, node.inputs[0].shape, allocation=Allocation.PERSISTENT)

    def count(context: Context, node: Node) -> None:
        node.temporaries[0].data[...] += 1
        np.copyto(node.outputs[0].data, node.temporaries[0].data)

    x = Spec(F32, [-1])
    ops = MutableOpResolver()
    ops.add_custom("Count", Registration(prepare=prepare, invoke=count))
    interpreter = Interpreter(model_content=one_op_model("Count", [x], [x]), op_resolver=ops, plugins=[])
    counts = [answer(interpreter, np.zeros(size, F32))[0] for size in (2, 2, 3, 2)]
    assert counts == [1, 2, 1, 1]
