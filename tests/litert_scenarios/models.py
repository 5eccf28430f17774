"""Models and delegates of the scenarios. What they look like follows tflite/delegates/delegate_test_util.cc of LiteRT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from oplet import (
    Allocation,
    BuiltinOperator,
    Context,
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateKernel,
    DelegateParams,
    Interpreter,
    ModelBuilder,
    MutableOpResolver,
    Node,
    Registration,
    SimpleDelegate,
    Tensor,
)

F32 = np.float32
COPY_NAME = "my_copy"
Test = TypeVar("Test", bound=Callable[..., None])

NONE = DelegateFlags.NONE
DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS
SHAPES = DelegateFlags.REQUIRE_PROPAGATED_SHAPES


def scenario(*names: str) -> Callable[[Test], Test]:
    """Marks a test with the names of LiteRT's tests whose scenario it states; test_complete.py reads them."""
    return lambda test: test


def like_input(context: Context, node: Node) -> None:
    first, second = node.inputs[0], node.inputs[-1]
    if first.shape != second.shape:
        raise ValueError(f"{first} and {second} differ in shape")
    context.resize_tensor(node.outputs[0], first.shape)


def add(context: Context, node: Node) -> None:
    np.add(node.inputs[0].data, node.inputs[1].data, node.outputs[0].data)


MY_ADD = Registration(prepare=like_input, invoke=add)


def build(
    inputs: Sequence[int], outputs: Sequence[int], nodes: Sequence[tuple[list[int], list[int]]], *, op: str = "my_add",
    names: Sequence[str] = ("main",), metadata: dict[str, bytes] | None = None, tensors: int = 0,
) -> bytes:  # fmt: skip
    """A model of float tensors of shape [3]; each of its subgraphs, by name, has the same nodes."""
    builder = ModelBuilder()
    for name in names:
        graph = builder.add_subgraph(name)
        count = max((1 + index for node in nodes for indices in node for index in indices), default=0)
        for index in range(max(count, tensors)):
            graph.add_tensor(f"t{index}", F32, [3])
        for read, written in nodes:
            graph.add_operator(op, read, written)
        graph.set_inputs(*inputs)
        graph.set_outputs(*outputs)
    for key, data in (metadata or {}).items():
        builder.add_metadata(key, data)
    return builder.to_bytes()


def adds(**about: Any) -> bytes:
    """2 = 0 + 0; 3 = 1 + 1; 4 = 2 + 1: the outputs are 3 and 4."""
    return build([0, 1], [3, 4], [([0, 0], [2]), ([1, 1], [3]), ([2, 1], [4])], **about)


def diamond(**about: Any) -> bytes:
    """1 = 0 + 0; 2 = 1 + 1; 3 = 1 + 1; 4 = 2 + 3."""
    return build([0], [4], [([0, 0], [1]), ([1, 1], [2]), ([1, 1], [3]), ([2, 3], [4])], **about)


def opened(content: bytes, *delegates: Delegate, registration: Registration | None = MY_ADD, **about: Any) -> Interpreter:
    """An interpreter of such a model; `registration` serves its custom op, None leaves it unresolved."""
    ops = MutableOpResolver()
    if registration is not None:
        for name in ("my_add", "my_copy"):
            ops.add_custom(name, registration)
    return Interpreter(model_content=content, op_resolver=ops, plugins=[], experimental_delegates=list(delegates), **about)


def plan(interpreter: Interpreter, subgraph: int = 0) -> list[int]:
    return interpreter._subgraphs[subgraph].execution_plan


def node(interpreter: Interpreter, index: int, subgraph: int = 0) -> Node:
    return interpreter._subgraphs[subgraph].nodes[index]


def tensor(interpreter: Interpreter, index: int) -> Tensor:
    return interpreter._subgraphs[0].tensors[index]


def answers(interpreter: Interpreter, shape: Sequence[int] = (3,)) -> None:
    """Set 1, 2, 3, ... on both inputs of `adds`, invoke, and check the outputs."""
    values = np.arange(1, 1 + np.prod(shape), dtype=F32).reshape(shape)
    interpreter.set_tensor(0, values)
    interpreter.set_tensor(1, values)
    interpreter.invoke()
    holds(interpreter, values)


def holds(interpreter: Interpreter, values: Any) -> None:
    assert interpreter.get_tensor(3).tolist() == (2 * values).tolist()
    assert interpreter.get_tensor(4).tolist() == (3 * values).tolist()


def resize(interpreter: Interpreter, *shape: int) -> None:
    for index in interpreter._subgraphs[0].inputs:
        interpreter.resize_tensor_input(index, shape)


class Fake(Delegate):
    """Claims given nodes of the models above; its kernels add as the replaced nodes would.

    Attributes:
        calls: what was called of it and its kernels, in order.
    """

    name = "fake_fused_op"

    def __init__(
        self, nodes: Sequence[int], flags: DelegateFlags = NONE, *, fail: str = "", shapes: str = "own", at_least: int = 0,
        op: str = "my_add",
    ) -> None:  # fmt: skip
        super().__init__()
        self.nodes = list(nodes)
        self.flags = flags
        self.fail = fail
        self.shapes = shapes
        self.at_least = at_least
        self.op = op
        self.calls: list[tuple[str, Any]] = []

    def prepare(self, context: DelegateContext) -> None:
        self.calls.append(("claim", context.subgraph_index))
        assert all(context.node(index).op_name == self.op for index in self.nodes)
        subsets = [subset for subset in context.preview_delegate_partitioning(self.nodes) if subset.claimed]
        wanted = [index for subset in subsets if len(subset.nodes) >= self.at_least for index in subset.nodes]
        context.preview_delegate_partitioning(wanted)  # as often as one likes
        context.replace_node_subsets_with_delegate_kernels(self.registration(), wanted if self.at_least else self.nodes)

    def registration(self) -> Registration:
        return Registration(
            custom_name=self.name, init=self.init, free=self.free, prepare=self.prepare_kernel, invoke=self.invoke
        )  # fmt: skip

    def init(self, context: Context, params: DelegateParams) -> DelegateParams:
        self.refuse("init")
        self.calls.append(("init", [replaced.index for replaced in params.nodes]))
        return params

    def free(self, context: Context, params: DelegateParams) -> None:
        self.calls.append(("free", [replaced.index for replaced in params.nodes]))

    def prepare_kernel(self, context: Context, node: Node) -> None:
        self.refuse("prepare")
        shape = node.inputs[0].shape
        for output in node.outputs:
            if self.shapes == "own":
                context.resize_tensor(output, shape)
            elif self.shapes == "dynamic":
                context.set_dynamic(output)
            elif output.shape != shape:
                raise ValueError(f"nobody told {output} that the shape is {list(shape)}")

    def invoke(self, context: Context, node: Node) -> None:
        self.refuse("invoke")
        made: dict[int, Any] = {}
        for replaced in node.user_data.nodes:
            a, b = (made[t.index] if t.index in made else t.data for t in replaced.inputs)  # noqa: SIM401 - some have no data
            made[replaced.outputs[0].index] = a + b
        for output in node.outputs:
            value = made[output.index]
            if output.allocation is Allocation.DYNAMIC:
                context.resize_tensor(output, value.shape)
            output.data[...] = value
            output.data_is_stale = output.buffer_handle is not None

    def refuse(self, what: str) -> None:
        if self.fail == what:
            raise ValueError(f"{what} does not work here")

    def copy_from_buffer_handle(self, context: Context, handle: Any, tensor: Tensor) -> None:
        assert tensor.buffer_handle == handle
        self.calls.append(("copy", handle))
        tensor.data[...] = 6

    def free_buffer_handle(self, context: Context, handle: Any) -> None:
        self.calls.append(("free buffer", handle))

    def count(self, what: str) -> int:
        return sum(name == what for name, _ in self.calls)


def float16_model() -> bytes:
    """((x + 2) + 2) * 2 + 2, where each 2 is a float16 constant that a DEQUANTIZE node widens."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    value = graph.add_tensor("x", F32, [1])
    graph.set_inputs(value)
    for number, op in enumerate((BuiltinOperator.ADD, BuiltinOperator.ADD, BuiltinOperator.MUL, BuiltinOperator.ADD)):
        half = graph.add_tensor(f"half{number}", np.float16, [1], data=np.array([2], np.float16))
        wide = graph.add_tensor(f"wide{number}", F32, [1])
        result = graph.add_tensor(f"y{number}", F32, [1])
        graph.add_operator(BuiltinOperator.DEQUANTIZE, [half], [wide])
        graph.add_operator(op, [value, wide], [result])
        value = result
    graph.set_outputs(value)
    return builder.to_bytes()


class Float16(SimpleDelegate):
    """Takes the ADD nodes with their float16 constants."""

    name = "fake_fp16_add_op"
    float16_constants = True

    def __init__(self, partitions: int, *, fail: bool = False) -> None:
        super().__init__()
        self.max_delegated_partitions = partitions
        self.fail = fail

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        return node.op is BuiltinOperator.ADD or "it only adds"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Float16Kernel(self.fail)


class Float16Kernel(DelegateKernel):
    """Adds up everything that it reads."""

    def __init__(self, fail: bool) -> None:
        self.fail = fail

    def prepare(self, context: Context, node: Node) -> None:
        if self.fail:
            raise ValueError("prepare does not work here")
        context.resize_tensor(node.outputs[0], [1])

    def invoke(self, context: Context, node: Node) -> None:
        node.outputs[0].data[0] = sum(float(tensor.data[0]) for tensor in node.inputs)
