"""What few delegate libraries do: dynamic outputs, scratch tensors, other inputs for a node, other subgraphs, metadata, flags."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plugins.native_ops.tests.delegates.conftest import F32, convolutions, run

from oplet import DelegateFlags, Interpreter, ModelBuilder, load_delegate
from oplet.errors import DelegateApplicationError
from oplet_testing import invoke


@pytest.fixture(scope="module")
def odd(build_once: Callable[..., str]) -> Callable[..., Any]:
    library = build_once("delegates/odd.c", library="libodd.so")
    return lambda what, **options: load_delegate(library, {"what": what, **options})


def chain(*ops: str) -> bytes:
    """The ops one after the other on four numbers, and a note."""
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    tensors = [graph.add_tensor(f"t{i}", F32, [4]) for i in range(len(ops) + 1)]
    for i, op in enumerate(ops):
        graph.add_operator(op, [tensors[i]], [tensors[i + 1]], custom=not op.isupper())
    graph.set_inputs(tensors[0])
    graph.set_outputs(tensors[-1])
    builder.add_metadata("note", b"hello")
    return builder.to_bytes()


def made(content: bytes, delegate: Any) -> Interpreter:
    interpreter = Interpreter(model_content=content, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    return interpreter


def answer(interpreter: Interpreter, *values: float) -> list[float]:
    invoke(interpreter, np.array(values, F32))
    found: list[float] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist()
    return found


def test_outputs_may_have_in_each_run_another_shape(odd: Callable[..., Any]) -> None:
    """Also where one kernel of the library reads what another one makes."""
    interpreter = made(chain("Positive", "Positive", "NEG", "Positive"), odd("dynamic", flags=1))
    assert [report.partitions for report in interpreter.delegation_reports()] == [[[0], [1], [3]]]
    interpreter = made(chain("Positive", "Positive", "NEG"), odd("dynamic", flags=1))
    for _ in range(2):
        assert answer(interpreter, 5, -2, 3, 1) == [-3, -1]
        assert answer(interpreter, 0, 0, 2, 0) == [0]
        assert answer(interpreter, -1, -1, -1, -1) == []
        assert answer(interpreter, 9, 8, 7, 6) == [-7, -6, -5, -4]


def test_kernels_may_have_tensors_of_their_own(odd: Callable[..., Any]) -> None:
    interpreter = made(chain("NEG", "ABS", "NEG"), odd("temporaries"))
    assert [report.partitions for report in interpreter.delegation_reports()] == [[[0], [2]]]
    assert answer(interpreter, 1, -2, 3, -4) == [-1, -2, -3, -4]
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    assert answer(interpreter, 5, -6) == [-5, -6]


def test_nodes_may_be_given_other_inputs_and_have_their_own_again_afterwards(odd: Callable[..., Any]) -> None:
    interpreter = made(chain("ABS", "NEG"), odd("rewires"))
    assert answer(interpreter, 1, -2, 3, -4) == [-1, 2, -3, 4]
    interpreter.remove_all_delegates()
    assert answer(interpreter, 1, -2, 3, -4) == [-1, -2, -3, -4]


def test_the_model_s_metadata_is_there(odd: Callable[..., Any]) -> None:
    interpreter = made(chain("NEG"), odd("metadata"))
    assert interpreter.delegation_reports()[0].unsupported == {0: "it looked at it, and did not claim it"}


def test_other_subgraphs_can_be_looked_at_also_while_a_kernel_runs(odd: Callable[..., Any]) -> None:
    """A kernel that stands for a call has the callee's constants from the callee."""
    builder = ModelBuilder()
    for name in ("main", "body"):
        graph = builder.add_subgraph(name)
        x = graph.add_tensor("x", F32, [4])
        one = graph.add_tensor("one", F32, [1], data=np.array([1 if name == "main" else 10], F32))
        y = graph.add_tensor("y", F32, [4])
        graph.set_inputs(x)
        graph.set_outputs(y)
        graph.add_operator("ADD", [x, one], [y])
    interpreter = Interpreter(model_content=builder.to_bytes())
    interpreter.modify_graph_with_delegate(odd("acquires"), [0])
    assert interpreter.delegation_reports()[0].partitions == [[0]]
    gc.collect()
    interpreter.allocate_tensors()
    assert answer(interpreter, 1, 2, 3, 4) == [11, 12, 13, 14]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (0, DelegateFlags.NONE),
        (3, DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES),
        (8, DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE),
        (2**40 + 1, DelegateFlags.ALLOW_DYNAMIC_TENSORS),
    ],
)
def test_flags_are_those_of_the_library(odd: Callable[..., Any], flags: int, expected: DelegateFlags) -> None:
    assert odd("", flags=flags).flags == expected


def test_flags_of_the_opaque_interface_too(my_delegate: str) -> None:
    assert load_delegate(my_delegate, {"flags": 3}).flags.value == 3
    interpreter = Interpreter(model_content=convolutions(1), experimental_delegates=[load_delegate(my_delegate, {"flags": 3})])
    interpreter.allocate_tensors()
    assert len(run(interpreter)) == 1
    with pytest.raises(DelegateApplicationError, match="Hint fully delegated to single delegate is set"):
        Interpreter(model_content=convolutions(1), experimental_delegates=[load_delegate(my_delegate, {"flags": 8})])
