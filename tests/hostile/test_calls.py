"""Calls in the wrong order, values that do not fit, models that ask for too much: refused, and the interpreter goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.children import LONG

from oplet import Interpreter, Limits, MutableOpResolver, Registration
from oplet.schema.options import AddOptions, IfOptions, WhileOptions
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec, one_op_model

from .harness import base, edited, refusal, rows, run

X = Spec("float32", [2])


@pytest.fixture
def interpreter() -> Interpreter:
    """The base model, ready to run."""
    interpreter = Interpreter(model_content=base())
    interpreter.allocate_tensors()
    return interpreter


class Unwilling:
    """What cannot become an array."""

    def __array__(self, *arguments: Any, **keywords: Any) -> Any:
        raise RuntimeError("no array today")


READ_ONLY = np.ones(2, np.float32)
READ_ONLY.flags.writeable = False
REFUSED_VALUES = {
    "dtype": (np.ones(2), "FLOAT64 but expected type FLOAT32 for input 0, name: input_0"),
    "rank": (np.ones((1, 2), np.float32), "2 but expected 1 for input 0.* 'input_0'"),
    "shape": (np.ones(3, np.float32), "3 but expected 2 for dimension 0 of input 0.* 'input_0'"),
    "objects": (np.array([1.0, None], object), "STRING but expected type FLOAT32"),
    "ragged": ([[1.0], [1.0, 2.0]], "list that is no array .* FLOAT32 for input 0"),
    "unwilling": (Unwilling(), "Unwilling that is no array .no array today"),
    "byte-swapped": (np.ones(2, ">f4"), ">f4 but expected type FLOAT32"),
    "nothing": (None, "expected type FLOAT32"),
    "text": ("ab", "STRING but expected type FLOAT32"),
}


@rows(53)
@pytest.mark.parametrize("kind", REFUSED_VALUES)
def test_a_value_that_does_not_fit_is_refused(interpreter: Interpreter, kind: str) -> None:
    value, words = REFUSED_VALUES[kind]
    refusal(lambda: interpreter.set_tensor(0, value), words)
    interpreter.invoke()


@rows(53)
def test_nan_is_no_integer() -> None:
    model = one_op_model("NEG", [Spec("int32", [2])], [Spec("int32", [2])])
    refusal(lambda: run(model, (np.array([np.nan, 1], np.float32),)), "FLOAT32 but expected type INT32")


@rows(53)
@pytest.mark.parametrize(
    "value",
    [READ_ONLY, np.ones(4, np.float32)[::2], np.ones((2, 1), np.float32).T[0]],
    ids=["read-only", "strided", "transposed"],
)
def test_arrays_of_every_layout_fit(interpreter: Interpreter, value: Any) -> None:
    interpreter.set_tensor(0, value)
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [2, 2]


@rows(53)
@pytest.mark.parametrize("index", [-1, 3, 2**40])
def test_a_tensor_that_is_not_there_is_refused(interpreter: Interpreter, index: int) -> None:
    refusal(lambda: interpreter.set_tensor(index, np.ones(2, np.float32)), f"Invalid tensor index {index}")
    refusal(lambda: interpreter.get_tensor(index), f"Invalid tensor index {index}")
    refusal(lambda: interpreter.resize_tensor_input(index, [2]), f"no tensor {index}")


@rows(53)
@pytest.mark.parametrize("shape", [["a"], [[1], [2, 3]], [None], [-3], [2**40, 2**40], [1] * 100])
def test_a_shape_that_is_none_is_refused(interpreter: Interpreter, shape: Any) -> None:
    refusal(lambda: interpreter.resize_tensor_input(0, shape), "shape|dimension")
    interpreter.allocate_tensors()
    interpreter.invoke()


@rows(54)
def test_calls_in_the_wrong_order_say_what_to_call() -> None:
    interpreter = Interpreter(model_content=base())
    refusal(interpreter.invoke, "not ready. Call allocate_tensors")
    refusal(lambda: interpreter.set_tensor(0, np.ones(2, np.float32)), "Try calling allocate_tensors")
    refusal(lambda: interpreter.get_tensor(2), "Run allocate_tensors")
    refusal(lambda: interpreter.get_signature_runner("serve"), "Invalid signature_key.*serve")
    interpreter.allocate_tensors()
    view = interpreter.tensor(0)()
    for call in (interpreter.allocate_tensors, interpreter.invoke, lambda: interpreter.resize_tensor_input(0, [3])):
        refusal(call, "at least 1 reference to internal data")
    del view
    interpreter.invoke()
    interpreter.close()
    refusal(interpreter.allocate_tensors, "was closed")
    refusal(interpreter.invoke, "not ready")


@rows(16)
def test_all_unresolved_operators_are_named_at_once() -> None:
    tensors = dict.fromkeys("xabc", X)
    ops = [Op("Mystery", "x", "a"), Op("Atan2Deg", "a", "b"), Op("ADD", "b b", "c", AddOptions())]

    def change(root: Any) -> None:
        next(code for code in root.operator_codes if not code.custom_code).version = 99

    data = edited(graph_model(Graph(tensors, "x", "c", ops)), change)
    refusal(lambda: Interpreter(model_content=data), "'ADD' version '99'.*Mystery.*Atan2Deg")
    refusal(lambda: run(graph_model(Graph(tensors, "x", "b", ops[:2]))), "Mystery.*Atan2Deg")


@rows(59)
@pytest.mark.parametrize("options", [b"\x01", b"no flexbuffer", b"\xff" * 64, bytes(range(256)), b"\x28\x28\x01" * 1000])
def test_custom_options_that_are_no_flexbuffer_are_refused(options: bytes) -> None:
    resolver = MutableOpResolver()
    resolver.add_custom("Options", Registration(prepare=lambda context, node: node.custom_map() and None, invoke=print))
    model = one_op_model("Options", [X], [X], custom_options=options)
    refusal(lambda: run(model, op_resolver=resolver), r"custom options .*\(Options\)")


NEVER = Graph({"v": X, "yes": np.array(True)}, "v", "yes", name="cond")
GROWS = Graph({"v": X, "w": X}, "v", "w", [Op("ADD", "v v", "w", AddOptions())], "body")
ROUND = Graph(
    {"a": X, "o": X}, "a", "o", [Op("WHILE", "a", "o", WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))], "m"
)
POSITIVE = Graph({"v": X, "0": np.zeros(2, np.float32), "p": Spec("bool", [2]), "axis": np.array([0], np.int32), "yes": Spec("bool", [])}, "v", "yes",
                 [Op("GREATER_EQUAL", "v 0", "p"), Op("REDUCE_ALL", "p axis", "yes")], "cond")  # fmt: skip


@rows(52)
@pytest.mark.parametrize("condition", [NEVER, POSITIVE], ids=["constant", "computed"])
def test_a_loop_without_end_is_stopped_and_says_by_what(condition: Graph) -> None:
    limits = Limits(max_while_iterations=100)
    refusal(lambda: run(graph_model(ROUND, condition, GROWS), limits=limits), "never ends|max_while_iterations")


@rows(52)
def test_a_loop_without_end_is_stopped_by_a_deadline() -> None:
    refusal(lambda: run(graph_model(ROUND, POSITIVE, GROWS), limits=Limits(max_seconds=0.2)), "max_seconds=0.2")


@rows(51, "class 7")
def test_calls_that_double_at_every_level_are_stopped() -> None:
    flag, levels = Spec("bool", []), 30
    graphs = []
    for level in range(1, levels):
        options = IfOptions(then_subgraph_index=level, else_subgraph_index=level)
        ops = [Op("IF", "c c a", "b", options), Op("IF", "c c b", "o", options)]
        graphs.append(Graph({"c": flag, "a": X, "b": X, "o": X}, "c a", "o", ops, f"level {level}"))
    last = Graph({"c": flag, "a": X, "o": X}, "c a", "o", [Op("ADD", "a a", "o", AddOptions())], "last")
    refusal(lambda: run(graph_model(*graphs, last), limits=Limits(max_subgraph_calls=1000, max_seconds=1.0)), r"Limits\(max")


CHILD = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
from hostile import test_kernels, test_rules
from hostile.harness import run
from oplet.errors import OpletError
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
for case in [*test_kernels.CASES, *test_rules.CASES]:
    try:
        run(case.make(), case.feeds)
        said = "nothing"
    except OpletError as error:
        said = "refused"
    except BaseException as error:
        said = repr(error)
    print(json.dumps([case.name, said, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) >> 10]))
"""


@rows(29, "class 16")
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_no_refusal_takes_the_memory_that_the_model_asks_for() -> None:
    folder = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), folder], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(name, said) for name, said, _ in answers if said != "refused"] == []
    assert max(megabytes for *_, megabytes in answers) < 300
