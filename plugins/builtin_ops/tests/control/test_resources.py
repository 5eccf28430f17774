"""Resource variables, hash tables and CALL_ONCE."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, TensorType
from oplet.errors import InvokeError, ModelError, OpletError, PrepareError, StateError, TensorError
from oplet.schema.options import AddOptions, CallOnceOptions, HashtableOptions, VarHandleOptions
from oplet_testing import litert_interpreter, run_op
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

X = Spec("float32", [2])
HANDLE = Spec(TensorType.RESOURCE, [])
KEEP = Op("VAR_HANDLE", "", "h", VarHandleOptions(shared_name="total"))
SETTING = Graph(
    {"h": HANDLE, "start": np.array([10, 20], np.float32)}, "", "", [KEEP, Op("ASSIGN_VARIABLE", "h start")], "setting"
)
ADDING = Graph(
    {"x": X, "h": HANDLE, "old": X, "y": X},
    "x",
    "y",
    [
        Op("CALL_ONCE", options=CallOnceOptions(init_subgraph_index=1)),
        KEEP,
        Op("READ_VARIABLE", "h", "old"),
        Op("ADD", "old x", "y", AddOptions()),
        Op("ASSIGN_VARIABLE", "h y"),
    ],
)
READING = Graph({"h": HANDLE, "y": X}, "", "y", [KEEP, Op("READ_VARIABLE", "h", "y")])
TOTAL = graph_model(ADDING, SETTING, READING, signatures={"add": 0, "read": 2})
ONES = np.ones(2, np.float32)


def litert_or_oplet(name: str) -> Any:
    return Interpreter if name == "oplet" else litert_interpreter()


@pytest.mark.parametrize("runtime", ["oplet", "litert"])
def test_a_variable_outlives_invokes_allocations_and_resets_and_is_seen_by_all_signatures(runtime: str) -> None:
    runner = litert_or_oplet(runtime)(model_content=TOTAL)

    def call(key: str, **inputs: Any) -> Any:
        return runner.get_signature_runner(key)(**inputs)["y"].tolist()

    values = [call("add", x=ONES), call("add", x=ONES)]
    runner.reset_all_variables()
    runner.allocate_tensors()
    values += [call("read"), call("add", x=ONES)]
    assert values == [[11, 21], [12, 22], [12, 22], [13, 23]]


def test_each_interpreter_has_variables_of_its_own() -> None:
    assert [run_op(TOTAL, ONES)[0].tolist() for _ in range(2)] == [[11, 21]] * 2


def test_a_variable_takes_any_shape_and_a_scalar_output_follows_it() -> None:
    main = Graph(
        {"x": X, "h": HANDLE, "y": Spec("float32", []), "z": X},
        "x",
        "z",
        [KEEP, Op("ASSIGN_VARIABLE", "h x"), Op("READ_VARIABLE", "h", "y"), Op("ADD", "y y", "z", AddOptions())],
    )
    runner = Interpreter(model_content=graph_model(main))
    for shape in ((2,), (3, 1), (0,)):
        runner.resize_tensor_input(0, shape)
        runner.allocate_tensors()
        runner.set_tensor(0, np.ones(shape, np.float32))
        runner.invoke()
        np.testing.assert_array_equal(runner.get_tensor(3), np.full(shape, 2))


def variable_model(value: Any, output: Spec, *, assign: bool = True) -> bytes:
    ops = [KEEP, *([Op("ASSIGN_VARIABLE", "h v")] if assign else []), Op("READ_VARIABLE", "h", "y")]
    return graph_model(Graph({"h": HANDLE, "v": value, "y": output}, "", "y", ops))


NEVER_ASSIGNED = (
    r"the variable 0 \('total'\) is read before anything is assigned to it; run the signature .* or, .* convert it again"
)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (variable_model(ONES, X, assign=False), NEVER_ASSIGNED),
        (variable_model(ONES, Spec("int32", [2])), "the variable 0 is of type FLOAT32, it is read into tensor 2 'y'"),
        (variable_model(ONES, Spec("float32", [3])), r"the variable 0 is of shape \[2\], it is read into tensor 2 'y'"),
    ],
)
def test_what_cannot_be_read_is_refused(model: bytes, reason: str) -> None:
    with pytest.raises(InvokeError, match=reason):
        run_op(model)


CALL = Op("CALL_ONCE", options=CallOnceOptions(init_subgraph_index=1))


@pytest.mark.parametrize(
    ("op", "graph", "reason"),
    [
        (
            CALL,
            Graph({"a": X}, "a", "a", name="io"),
            "calls subgraph 1 'io', which has 1 inputs and 1 outputs; it must have none",
        ),
        (CALL, Graph({}, ops=[CALL], name="itself"), "in a circle: subgraph 1 'itself' -> subgraph 1 'itself'"),
        (Op("CALL_ONCE", options=CallOnceOptions(init_subgraph_index=-3)), SETTING, "there is no subgraph -3 to call"),
        (CALL._replace(inputs="x"), SETTING, "CALL_ONCE has no inputs and no outputs, this node has 1 and 0"),
    ],
)
def test_a_subgraph_that_cannot_be_called_once_is_refused(op: Op, graph: Graph, reason: str) -> None:
    main = Graph({"x": X, "y": X}, "x", "y", [op, Op("ADD", "x x", "y", AddOptions())])
    with pytest.raises((ModelError, PrepareError), match=reason):
        run_op(graph_model(main, graph), ONES)


def test_call_once_tries_again_after_a_failure() -> None:
    failing = Graph({"h": HANDLE, "v": X}, "", "", [KEEP, Op("READ_VARIABLE", "h", "v")], "failing")
    runner = Interpreter(model_content=graph_model(ADDING, failing, SETTING, signatures={"set": 2}))
    runner.allocate_tensors()
    runner.set_tensor(0, ONES)
    with pytest.raises(InvokeError, match=r"READ_VARIABLE.* failed to invoke.* Node number 0 \(CALL_ONCE\)"):
        runner.invoke()
    runner.get_signature_runner("set")()
    runner.invoke()
    assert runner.get_tensor(3).tolist() == [11, 21]


TABLE = Spec(TensorType.RESOURCE, [1])
WORDS = np.array([b"one", b"two", b"", b"one"], object)
NUMBERS = np.array([1, 2, 3, 4], np.int64)


def table_model(keys: Any, values: Any, default: Any, count: int, *, fill: bool = True) -> bytes:
    """Look keys up in a table that maps `keys` to `values`, and give the table's size."""
    types = [TensorType.STRING if array.dtype == object else TensorType.INT64 for array in (keys, values)]
    make = Op("HASHTABLE", "", "h", HashtableOptions(table_id=5, key_dtype=types[0], value_dtype=types[1]))
    tensors = {
        "x": Spec(types[0], [count]), "h": TABLE, "k": keys, "v": values, "default": default,
        "y": Spec(types[1], [count]), "size": Spec("int64", [1]),
    }  # fmt: skip
    ops = [make, *([Op("HASHTABLE_IMPORT", "h k v")] if fill else [])]
    ops += [Op("HASHTABLE_FIND", "h x default", "y"), Op("HASHTABLE_SIZE", "h", "size")]
    return graph_model(Graph(tensors, "x", "y size", ops))


@pytest.mark.parametrize("runtime", ["oplet", "litert"])
def test_tables_map_words_to_numbers_and_numbers_to_words(runtime: str) -> None:
    interpreter = litert_or_oplet(runtime)
    wanted = np.array([b"two", b"none", b"", b"one"], object)
    found, size = run_op(table_model(WORDS, NUMBERS, np.array(-1, np.int64), 4), wanted, interpreter=interpreter)
    assert (found.tolist(), size.tolist()) == ([2, -1, 3, 1], [3])
    numbers = np.array([4, 9, 1], np.int64)
    found, size = run_op(table_model(NUMBERS, WORDS, np.array([b"?"], object), 3), numbers, interpreter=interpreter)
    assert (found.tolist(), size.tolist()) == ([b"one", b"?", b"one"], [4])


def test_a_table_must_be_filled_before_it_is_used() -> None:
    with pytest.raises(InvokeError, match="hashtable need to be initialized before using"):
        run_op(table_model(WORDS, NUMBERS, np.array(-1, np.int64), 1, fill=False), np.array([b"one"], object))


@pytest.mark.parametrize(
    ("keys", "values", "default", "reason"),
    [
        (NUMBERS, NUMBERS, NUMBERS[:1], "maps INT64 to STRING or STRING to INT64, not INT64 to INT64"),
        (WORDS[:3], NUMBERS, NUMBERS[:1], "differ in shape"),
        (WORDS, NUMBERS, WORDS[:1], "differ in type"),
        (WORDS, NUMBERS, NUMBERS[:0], "is empty"),
    ],
)
def test_tables_that_make_no_sense_are_refused(keys: Any, values: Any, default: Any, reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        Interpreter(model_content=table_model(keys, values, default, 1)).allocate_tensors()


def test_a_number_belongs_to_a_variable_or_to_a_table() -> None:
    table = HashtableOptions(table_id=0, key_dtype=TensorType.INT64, value_dtype=TensorType.STRING)
    ops = [KEEP, Op("ASSIGN_VARIABLE", "h x"), Op("HASHTABLE", "", "t", table)]
    main = Graph({"x": X, "h": HANDLE, "t": TABLE}, "x", "x", ops)
    with pytest.raises(InvokeError, match="the resource 0 is no hash table, it is a variable already"):
        run_op(graph_model(main), ONES)


@pytest.mark.parametrize("first", [True, False], ids=["at first", "in place of a value"])
@pytest.mark.parametrize(
    "values",
    [
        {"total": [[1], [2, 3]]}, {"total": None}, {"total": np.zeros(2, "M8[s]")}, {"total": np.zeros(2, "i4,f4")},
        {"total": np.zeros(2, object)}, {"total": np.zeros(2, np.longdouble)}, {1: ONES}, {b"total": ONES}, {"other": ONES}, [1], None,
    ],
)  # fmt: skip
def test_a_variable_takes_no_value_that_no_tensor_has(values: Any, first: bool) -> None:
    interpreter = Interpreter(model_content=TOTAL)
    if not first:
        interpreter.set_variables({"total": ONES})
    with pytest.raises(TensorError):
        interpreter.set_variables(values)
    assert list(interpreter.get_variables()) == ([] if first else ["total"])


def test_strings_that_a_variable_is_set_to_are_bytes_as_kernels_expect() -> None:
    for value in (["a", b"b"], np.array(["a", "b"]), np.array([b"a", b"b"]), np.array([b"a", "b"], object)):
        interpreter = Interpreter(model_content=TOTAL)
        interpreter.set_variables({"total": value})
        assert list(map(type, interpreter.get_variables()["total"].tolist())) == [bytes, bytes]


def test_a_closed_interpreter_has_no_variables_any_more() -> None:
    interpreter = Interpreter(model_content=TOTAL)
    interpreter.get_signature_runner("add")(x=ONES)
    interpreter.close()
    for use in (interpreter.get_variables, lambda: interpreter.set_variables({"total": ONES})):
        with pytest.raises(StateError, match="was closed"):
            use()
