"""Delegates that break the contract: reported, and the graph runs without them, or is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Context, DelegateContext, DelegateKernel, DelegateParams, Interpreter, Node, Registration, SimpleDelegate
from oplet.errors import DelegateError, OpletError
from oplet.ops.tensor import Tensor
from oplet_testing import invoke
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

from .harness import raising, refusal, rows

X = Spec("float32", [2])
#: y = |x|, z = |y|
MODEL = graph_model(Graph(dict.fromkeys("xyz", X), "x", "z", [Op("ABS", "x", "y"), Op("ABS", "y", "z")]))


class Kernel(DelegateKernel):
    """Answers with what it reads; `broken` replaces its methods."""

    def __init__(self, params: DelegateParams, broken: dict[str, Callable[..., Any]]) -> None:
        self.params = params
        for name, method in broken.items():
            setattr(self, name, method)

    def prepare(self, context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(self, context: Context, node: Node) -> None:
        np.abs(node.inputs[0].data, out=node.outputs[0].data)


class Broken(SimpleDelegate):
    """Claims all nodes, unless it is told otherwise."""

    name = "Broken"

    def __init__(self, kernel: dict[str, Callable[..., Any]] | None = None, **methods: Callable[..., Any]) -> None:
        super().__init__()
        self.kernel = kernel or {}
        for name, method in methods.items():
            setattr(self, name, method)

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        return True

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Kernel(params, self.kernel)


def run(interpreter: Interpreter) -> list[float]:
    invoke(interpreter, np.array([-1, 2], np.float32))
    answer: list[float] = interpreter.get_tensor(2).tolist()
    return answer


def claiming(*nodes: int) -> Callable[[DelegateContext], None]:
    return lambda context: context.replace_node_subsets_with_delegate_kernels(Registration(invoke=print), nodes)


def losing_inputs(context: Context, node: Node) -> None:
    node.inputs.clear()


def wrong_tensor(context: Context, node: Node) -> None:
    node.outputs[0].data = np.ones(9, np.float32)


class Panic(BaseException):
    """As Rust's panics reach Python."""


class Flagless(Broken):
    @property
    def flags(self) -> Any:
        raise Panic("lib.rs")


PREPARING = {
    "panics in prepare": (Broken(prepare=raising(Panic("lib.rs"))), "Broken failed on subgraph 0.*lib.rs"),
    "panics about its flags": (Flagless(), "Flagless|Broken.*lib.rs"),
    "kernel panics in init": (Broken({"init": raising(Panic("lib.rs"))}), "Panic: lib.rs"),
    "raises in prepare": (Broken(prepare=raising(KeyError("x"))), "Broken failed on subgraph 0.*'x'"),
    "exits in prepare": (Broken(prepare=raising(SystemExit(3))), "Broken failed on subgraph 0.*3"),
    "raises when asked": (Broken(is_node_supported=raising(ValueError("no"))), "Broken failed .*no"),
    "raises in initialize": (Broken(initialize=raising(ValueError("no"))), "Broken failed .*no"),
    "claims a node that is not there": (Broken(prepare=claiming(0, 77)), "77"),
    "claims a node before the first": (Broken(prepare=claiming(-1)), "-1"),
    "asks for a node that is not there": (Broken(prepare=lambda context: context.node(9)), "asks for node 9; .* has 2"),
    "asks for a subgraph that is not there": (
        Broken(prepare=lambda context: context.subgraph_context(5)),
        "subgraph 5; .* has 1",
    ),
    "makes no kernel": (Broken(create_kernel=raising(RuntimeError("out of order"))), "out of order"),
    "makes another thing": (Broken(create_kernel=lambda params: 3), "int|3"),
    "kernel exits in init": (Broken({"init": raising(SystemExit(1))}), "SystemExit|: 1"),
    "kernel raises in prepare": (Broken({"prepare": raising(IndexError("7"))}), "IndexError: 7"),
    "kernel cannot run the node": (Broken({"prepare": raising(NotImplementedError("ABS"))}), "NotImplementedError: ABS"),
    "kernel binds nothing": (Broken({"bind": lambda context, node: None}), "bind returns None"),
    "kernel loses its tensors": (Broken({"prepare": losing_inputs}), "changes the list"),
    "kernel asks for a negative size": (Broken({"prepare": lambda c, n: c.resize_tensor(n.outputs[0], [-1])}), r"\[-1\]"),
}


@rows(57)
@pytest.mark.parametrize("kind", PREPARING)
def test_a_delegate_that_fails_to_apply_is_named_and_the_graph_runs_without_it(kind: str) -> None:
    delegate, words = PREPARING[kind]
    interpreter = Interpreter(model_content=MODEL)
    error = refusal(lambda: interpreter.modify_graph_with_delegate(delegate), words)
    assert isinstance(error, DelegateError)
    assert "Broken" in str(error)
    [report] = interpreter.delegation_reports()
    assert (report.delegate, report.applied) == ("Broken", False)
    assert run(interpreter) == [1, 2]
    interpreter.close()
    refusal(lambda: Interpreter(model_content=MODEL, experimental_delegates=[delegate]), words)


RUNNING = {
    "raises in invoke": ({"invoke": raising(ZeroDivisionError("z"))}, "ZeroDivisionError: z.*Broken"),
    "panics in invoke": ({"invoke": raising(Panic("lib.rs"))}, "Panic: lib.rs.*Broken"),
    "exits in invoke": ({"invoke": raising(SystemExit(2))}, "SystemExit: 2.*Broken"),
    "returns the wrong tensor": ({"invoke": wrong_tensor}, r"float32 \[9\] in the place .*Broken"),
}


@rows(57)
@pytest.mark.parametrize("kind", RUNNING)
def test_a_delegate_that_fails_to_run_is_named_and_can_be_removed(kind: str) -> None:
    kernel, words = RUNNING[kind]
    interpreter = Interpreter(model_content=MODEL, experimental_delegates=[Broken(kernel)])
    refusal(lambda: run(interpreter), words)
    interpreter.remove_all_delegates()
    assert run(interpreter) == [1, 2]


@rows(57)
@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(1), Panic("lib.rs")])
def test_a_kernel_that_fails_to_free_is_named(error: BaseException) -> None:
    interpreter = Interpreter(model_content=MODEL, experimental_delegates=[Broken({"free": raising(error)})])
    assert run(interpreter) == [1, 2]
    refusal(interpreter.close, f"{type(error).__name__}.*Broken")
    interpreter.close()


def keeping(context: Context, node: Node) -> None:
    node.outputs[0].buffer_handle, node.outputs[0].data_is_stale = 7, True


def copying_nonsense(context: Context, handle: Any, tensor: Tensor) -> None:
    tensor.data[...] = np.ones(9, np.float32)


@rows(57)
@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({}, "Broken cannot copy the data of tensor 2"),
        ({"copy_from_buffer_handle": raising(KeyError("x"))}, "Broken cannot copy the data of tensor 2 .* from its buffer: 'x'"),
        ({"copy_from_buffer_handle": raising(SystemExit(4))}, "Broken cannot copy the data of tensor 2 .* from its buffer: 4"),
        ({"copy_from_buffer_handle": copying_nonsense}, "Broken cannot copy the data of tensor 2"),
    ],
)
def test_a_buffer_that_cannot_be_copied_back_is_told_of(methods: dict[str, Callable[..., Any]], words: str) -> None:
    interpreter = Interpreter(model_content=MODEL, experimental_delegates=[Broken({"invoke": keeping}, **methods)])
    refusal(lambda: run(interpreter), words)
    interpreter.close()


@rows(57)
def test_a_buffer_that_cannot_be_freed_is_told_of_and_the_kernels_are_freed() -> None:
    freed: list[int] = []
    delegate = Broken(
        {"invoke": keeping, "free": lambda context: freed.append(1)}, free_buffer_handle=raising(ValueError("stuck"))
    )
    interpreter = Interpreter(model_content=MODEL, experimental_delegates=[delegate])
    with pytest.raises(OpletError):
        run(interpreter)
    refusal(interpreter.close, "Broken cannot free its buffer 7 of tensor 2 .*stuck")
    assert freed == [1]


@rows(57)
def test_what_is_no_delegate_is_refused() -> None:
    for thing in (None, 3, Broken):
        refusal(lambda thing=thing: Interpreter(model_content=MODEL, experimental_delegates=[thing]), "no oplet Delegate")  # type: ignore[misc, list-item]
