"""What a kernel refuses for values or sizes waits for the run; what no resize changes is refused while the model is prepared."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from core.tests.chains import F32, like_input

from oplet import Context, Interpreter, ModelBuilder, MutableOpResolver, Node, Registration, ensure, ensure_fits
from oplet.errors import InvokeError, LimitError, PrepareError
from oplet_testing import invoke


def copy(context: Context, node: Node) -> None:
    node.outputs[0].data[...] = node.inputs[0].data


def bind_copy(context: Context, node: Node) -> Callable[[], None]:
    source, output = node.inputs[0].data, node.outputs[0].data
    return lambda: np.copyto(output, source)


def prepare_even(context: Context, node: Node) -> None:
    ensure_fits(node.inputs[0].size % 2 == 0, lambda: f"{node.inputs[0]} has an odd number of values.")
    like_input(context, node)


def bind_even(context: Context, node: Node) -> Callable[[], None]:
    ensure(node.inputs[0].size % 2 == 0, lambda: f"{node.inputs[0]} has an odd number of values.")
    return bind_copy(context, node)


def prepare_never(context: Context, node: Node) -> None:
    ensure(False, "it takes no such tensors.")


#: Kernels that take an even number of values, by where they look.
EVEN = {
    "prepare": Registration(prepare=prepare_even, bind=bind_copy, pure=True),
    "prepare, with invoke": Registration(prepare=prepare_even, invoke=copy, pure=True),
    "bind": Registration(prepare=like_input, bind=bind_even, pure=True),
    "never": Registration(prepare=prepare_never, bind=bind_copy),
}


def model(*, constant: bool = False) -> bytes:
    """y = Copy(Even(Copy(x))), or of a constant of three values, and z = Copy(x)."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, z = (graph.add_tensor(name, F32, [3]) for name in "xz")
    first = graph.add_tensor("first", F32, [3], data=np.arange(3, dtype=F32) if constant else None)
    second, y = (graph.add_tensor(name, F32, [3]) for name in ("second", "y"))
    if not constant:
        graph.add_operator("Copy", [x], [first])
    graph.add_operator("Even", [first], [second])
    graph.add_operator("Copy", [second], [y])
    graph.add_operator("Copy", [x], [z])
    graph.set_inputs(x)
    graph.set_outputs(y, z)
    return builder.to_bytes()


def make(where: str, *, constant: bool = False) -> Interpreter:
    ops = MutableOpResolver()
    ops.add_custom("Copy", Registration(prepare=like_input, bind=bind_copy, pure=True))
    ops.add_custom("Even", EVEN[where])
    return Interpreter(model_content=model(constant=constant), op_resolver=ops, plugins=[])


@pytest.mark.parametrize("constant", [False, True], ids=["activations", "a constant"])
@pytest.mark.parametrize("where", ["prepare", "prepare, with invoke", "bind"])
def test_values_that_a_node_cannot_run_with_are_refused_in_the_run(where: str, constant: bool) -> None:
    interpreter = make(where, constant=constant)
    interpreter.allocate_tensors()
    for _ in range(2):
        with pytest.raises(InvokeError, match=r"odd number of values\. Node number \d \(Even\) failed to invoke"):
            interpreter.invoke()


@pytest.mark.parametrize("where", ["prepare", "prepare, with invoke", "bind"])
def test_after_a_resize_they_are_judged_anew(where: str) -> None:
    interpreter = make(where)
    interpreter.allocate_tensors()
    for size in (4, 3, 2, 5, 4):
        values = np.arange(size, dtype=F32)
        if size % 2:
            with pytest.raises(InvokeError, match="odd"):
                invoke(interpreter, values, resize=True)
        else:
            assert [made.tolist() for made in invoke(interpreter, values, resize=True)] == [values.tolist()] * 2


def test_what_no_resize_changes_is_refused_while_preparing() -> None:
    interpreter = make("never")
    for _ in range(2):
        with pytest.raises(PrepareError, match=r"no such tensors.*failed to prepare"):
            interpreter.allocate_tensors()


def test_a_folded_node_that_fails_in_another_way_runs_with_the_others() -> None:
    def fail(context: Context, node: Node) -> None:
        raise ZeroDivisionError("by 0")

    ops = MutableOpResolver()
    ops.add_custom("Copy", Registration(prepare=like_input, bind=bind_copy, pure=True))
    ops.add_custom("Even", Registration(prepare=like_input, invoke=fail, pure=True))
    interpreter = Interpreter(model_content=model(constant=True), op_resolver=ops, plugins=[])
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=r"ZeroDivisionError: by 0. Node number 0 \(Even\) failed to invoke"):
        interpreter.invoke()


def test_a_folded_node_that_reaches_a_limit_ends_the_preparation() -> None:
    def charge(context: Context, node: Node) -> None:
        raise LimitError("it is too much.")

    ops = MutableOpResolver()
    ops.add_custom("Copy", Registration(prepare=like_input, bind=bind_copy, pure=True))
    ops.add_custom("Even", Registration(prepare=like_input, invoke=charge, pure=True))
    with pytest.raises(LimitError, match="too much"):
        Interpreter(model_content=model(constant=True), op_resolver=ops, plugins=[]).allocate_tensors()


@pytest.mark.parametrize("where", ["prepare", "bind"])
def test_outputs_are_what_they_were_where_all_is_checked(where: str) -> None:
    ops = MutableOpResolver()
    ops.add_custom("Copy", Registration(prepare=like_input, bind=bind_copy, pure=True))
    ops.add_custom("Even", EVEN[where])
    interpreter = Interpreter(model_content=model(), op_resolver=ops, plugins=[], checks=True)
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match="odd"):
        interpreter.invoke()
    assert invoke(interpreter, np.ones(2, F32), resize=True)[0].tolist() == [1, 1]
