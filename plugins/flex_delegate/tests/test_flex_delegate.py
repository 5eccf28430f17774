"""The flex delegate: TensorFlow's answers, values that cross partitions, resources of one interpreter alone, and refusals in one sentence."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from plugins.flex_delegate.tests.flex_models import FlexModel, abs_model, opened, run
from tests.children import run_child

from oplet import Interpreter, Limits, MutableOpResolver, Registration, TensorType, load_delegate
from oplet.errors import InvokeError, LimitError, OpletError, PrepareError
from oplet_testing import DelegateContract, elementwise

tf = pytest.importorskip("tensorflow")

F32, I32, I64 = np.float32, np.int32, np.int64
_FLOAT, _STRING, _LONG, _INT = TensorType.FLOAT32, TensorType.STRING, TensorType.INT64, TensorType.INT32


def chain(first: str = "Erf", second: str = "Sinh") -> bytes:
    """Two Flex nodes with a built-in one between them, of any batch."""
    model = FlexModel()
    for name in "xaby":
        model.tensor(name, F32, [None, 3])
    model.flex(first, "x", "a", T=_FLOAT).node("NEG", "a", "b").flex(second, "b", "y", T=_FLOAT)
    return model.content("x", "y")


class TestContract(DelegateContract):
    """Against kernels of numpy's, since nobody else serves the nodes without the delegate."""

    delegate = "flex"
    model = chain("Square", "Sign")
    inputs = (np.linspace(-1, 1, 6, dtype=F32).reshape(2, 3),)

    @contextmanager
    def opened(self, **arguments: Any) -> Iterator[Interpreter]:
        resolver = MutableOpResolver()
        resolver.add_custom("FlexSquare", elementwise(np.square))
        resolver.add_custom("FlexSign", elementwise(np.sign))
        with super().opened(**{"op_resolver": resolver, **arguments}) as interpreter:
            yield interpreter


def test_two_islands_give_tensorflow_s_numbers_also_with_other_sizes() -> None:
    interpreter = opened(chain())
    for batch in (1, 4, 2):
        x = np.linspace(-2, 2, 3 * batch, dtype=F32).reshape(batch, 3)
        [y] = run(interpreter, x)
        np.testing.assert_array_equal(y, tf.sinh(-tf.math.erf(x)).numpy())
    assert [report.op for report in interpreter.explain()] == ["flex", "NEG", "flex"]


def test_it_is_applied_by_itself_where_a_flex_operator_has_no_kernel() -> None:
    interpreter = Interpreter(model_content=chain(), plugins=["oplet-flex-delegate", "oplet-builtin-ops"])
    interpreter.resize_tensor_input(0, [1, 3])
    interpreter.allocate_tensors()
    assert [report.op for report in interpreter.explain()] == ["flex", "NEG", "flex"]


def test_strings_and_shapes_that_depend_on_data_cross_the_border() -> None:
    model = FlexModel().tensor("x", _STRING, [None]).tensor("y", _STRING, [None]).tensor("i", I32, [None]).tensor("n", I32, [])
    model.flex("Unique", "x", "y i", T=_STRING, out_idx=_INT).flex("Size", "y", "n", T=_STRING, out_type=_INT)
    interpreter = opened(model.content("x", "y i n"))
    for words in ([b"b", b"a", b"b", b"\xff\0"], [], [b""]):
        y, i, n = run(interpreter, np.array(words, object))
        assert y.tolist() == list(dict.fromkeys(words))
        assert [y.tolist()[place] for place in i] == words
        assert n == len(set(words))


# Variants and resources -------------------------------------------------------------------------------------------


def listed() -> FlexModel:
    """A list of tensors that crosses from one partition to another, around a node that needs the first and that the second needs."""
    model = FlexModel().tensor("x", F32, [2, 3]).tensor("held", TensorType.VARIANT).tensor("shape", I32, [1], [3])
    model.tensor("n", I32, []).tensor("place", I32, []).tensor("zero", I32, [], 0).tensor("y", F32, [3])
    model.flex("TensorListFromTensor", "x shape", "held", element_dtype=_FLOAT, shape_type=_INT)
    return model.flex("TensorListLength", "held", "n")


def test_a_variant_crosses_from_one_partition_to_another() -> None:
    model = listed().node("NEG", "n", "place").tensor("two", I32, [], 2).tensor("index", I32, [])
    model.flex("AddV2", "place two", "index", T=_INT)
    model.flex("TensorListGetItem", "held index shape", "y", element_dtype=_FLOAT)
    interpreter = opened(model.content("x", "y"))
    [y] = run(interpreter, np.arange(6, dtype=F32).reshape(2, 3))
    assert y.tolist() == [0, 1, 2]
    assert [report.op for report in interpreter.explain()] == ["flex", "NEG", "flex"]


def test_a_variant_that_another_package_made_is_refused_by_its_kind() -> None:
    def invoke(context: Any, node: Any) -> None:
        node.outputs[0].data[()] = [1, 2]

    resolver = MutableOpResolver()
    resolver.add_custom(
        "Own", Registration(prepare=lambda context, node: context.resize_tensor(node.outputs[0], ()), invoke=invoke)
    )
    model = FlexModel().tensor("x", F32, [3]).tensor("held", TensorType.VARIANT).tensor("n", I32, [])
    content = model.node("Own", "x", "held", b"\0").flex("TensorListLength", "held", "n").content("x", "n")
    interpreter = opened(content, op_resolver=resolver)
    with pytest.raises(OpletError, match="holds a builtins.list, which TensorFlow did not make"):
        run(interpreter, np.zeros(3, F32))


def counter(container: str = "") -> bytes:
    """A model that adds its input to a variable, and gives what is there then; and its number of tables."""
    model = FlexModel().tensor("x", F32, [3]).tensor("v", TensorType.RESOURCE).tensor("y", F32, [3]).tensor("made", np.bool_)
    model.tensor("w", TensorType.RESOURCE).tensor("one", F32, [3], np.ones(3, F32))
    model.flex("VarHandleOp", "", "v", dtype=_FLOAT, shape=(3,), shared_name="count", container=container)
    model.flex("VarIsInitializedOp", "v", "made")
    model.flex("AssignAddVariableOp" if container == "later" else "AssignVariableOp", "v x", "", dtype=_FLOAT)
    return model.flex("ReadVariableOp", "v", "y", dtype=_FLOAT).content("x", "made y")


def test_a_variable_stays_from_one_invoke_to_the_next_and_is_no_other_interpreter_s() -> None:
    first, second = opened(counter()), opened(counter())
    ones = np.ones(3, F32)
    assert [value.tolist() for value in run(first, ones)] == [False, [1, 1, 1]]
    assert [value.tolist() for value in run(first, 2 * ones)] == [True, [2, 2, 2]]
    assert [value.tolist() for value in run(second, 5 * ones)] == [False, [5, 5, 5]]
    assert [value.tolist() for value in run(first, 3 * ones)] == [True, [3, 3, 3]]


def test_the_variables_of_an_interpreter_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from oplet_flex_delegate.kernel import Container

    kept: list[Any] = []
    monkeypatch.setattr(Container, "keep", lambda self, key, handle: (kept.append(handle), self._handles.update({key: handle})))
    interpreter = opened(counter("elsewhere"))
    run(interpreter, np.ones(3, F32))
    [handle] = kept
    assert tf.raw_ops.VarIsInitializedOp(resource=handle)
    interpreter.close()
    assert not tf.raw_ops.VarIsInitializedOp(resource=handle)


def test_a_variable_that_nobody_set_is_an_error_of_one_sentence() -> None:
    interpreter = opened(counter("later"))
    with pytest.raises(InvokeError, match=r"FlexAssignAddVariableOp, node 2, run by TensorFlow: .*count") as caught:
        run(interpreter, np.ones(3, F32))
    assert "\n" not in str(caught.value)
    assert "function_node" not in str(caught.value)


def table() -> bytes:
    """A hash table that is filled and asked in each invoke."""
    model = (
        FlexModel().tensor("x", _STRING, [None]).tensor("t", TensorType.RESOURCE).tensor("y", I64, [None]).tensor("n", I64, [])
    )
    model.tensor("keys", _STRING, [2], [b"a", b"b"]).tensor("values", I64, [2], [1, 2]).tensor("other", I64, [], -1)
    model.flex("MutableHashTableV2", "", "t", key_dtype=_STRING, value_dtype=_LONG)
    model.flex("LookupTableFindV2", "t x other", "y", Tin=_STRING, Tout=_LONG)
    model.flex("LookupTableInsertV2", "t keys values", "", Tin=_STRING, Tout=_LONG)
    return model.flex("LookupTableSizeV2", "t", "n").content("x", "y n")


def test_a_table_keeps_what_was_inserted_and_is_the_interpreter_s_own() -> None:
    words = np.array([b"b", b"c"], object)
    first, second = opened(table()), opened(table())
    assert [value.tolist() for value in run(first, words)] == [[-1, -1], 2]
    assert [value.tolist() for value in run(first, words)] == [[2, -1], 2]
    assert [value.tolist() for value in run(second, words)] == [[-1, -1], 2]


def drawn() -> bytes:
    """Two equal nodes that draw random numbers from a seed."""
    model = FlexModel().tensor("shape", I32, [1], [4]).tensor("x", F32, [4])
    for name in "abyz":
        model.tensor(name, F32, [4])
    for name in "ab":
        model.flex("RandomUniform", "shape", name, T=_INT, dtype=_FLOAT, seed=7, seed2=1)
    return model.flex("AddV2", "x a", "y", T=_FLOAT).flex("AddV2", "x b", "z", T=_FLOAT).content("x", "y z")


def test_a_seeded_generator_is_the_node_s_own() -> None:
    zeros = np.zeros(4, F32)
    first, second = opened(drawn()), opened(drawn())
    runs = [run(first, zeros) for _ in range(3)]
    assert all(y.tolist() == z.tolist() for y, z in runs)
    assert len({tuple(y.tolist()) for y, _ in runs}) == 3
    assert [run(second, zeros)[0].tolist() for _ in range(3)] == [y.tolist() for y, _ in runs]


# Refusals ---------------------------------------------------------------------------------------------------------


def refusal(content: bytes) -> str:
    [report] = opened(content).delegation_reports()
    return report.unsupported[0]


def test_attributes_that_tensorflow_refuses_are_a_reason() -> None:
    reason = refusal(abs_model(T=_STRING))
    assert reason.startswith("Value for attr 'T' of string is not in the list of allowed values: bfloat16, half")
    assert "NodeDef" not in reason


def test_other_inputs_and_outputs_than_tensorflow_s_are_a_reason() -> None:
    model = FlexModel().tensor("x", F32, [3]).tensor("y", I32, [3])
    assert (
        refusal(model.flex("Abs", "x", "y", T=_FLOAT).content("x", "y"))
        == "it makes FLOAT32 in TensorFlow, and INT32 in the model"
    )
    model = FlexModel().tensor("x", F32, [3]).tensor("y", F32, [3])
    assert refusal(model.flex("Abs", "x x", "y", T=_FLOAT).content("x", "y"))


def test_a_type_without_a_kernel_for_cpus_is_a_reason() -> None:
    model = FlexModel().tensor("x", np.int8, [2]).tensor("y", np.bool_, [2])
    reason = refusal(model.flex("ApproximateEqual", "x x", "y", T=TensorType.INT8).content("x", "y"))
    assert reason == "TensorFlow has no kernel of ApproximateEqual for CPUs and these types"


def test_shapes_that_tensorflow_refuses_name_the_node_of_the_model() -> None:
    model = FlexModel().tensor("x", F32, [3]).tensor("y", F32, [2, 2])
    content = model.flex("Cholesky", "x", "y", T=_FLOAT).content("x", "y")
    with pytest.raises(
        PrepareError, match=r"FlexCholesky, node 0, run by TensorFlow: .*[Ss]hape must be at least rank 2"
    ) as caught:
        opened(content).allocate_tensors()
    assert "\n" not in str(caught.value)


def test_values_that_tensorflow_refuses_name_the_node_of_the_model() -> None:
    model = FlexModel().tensor("x", F32, [2, 2]).tensor("y", F32, [2, 2])
    interpreter = opened(model.flex("MatrixInverse", "x", "y", T=_FLOAT).content("x", "y"))
    with pytest.raises(InvokeError, match="FlexMatrixInverse, node 0, run by TensorFlow: Input is not invertible"):
        run(interpreter, np.zeros((2, 2), F32))
    [y] = run(interpreter, np.eye(2, dtype=F32))
    assert y.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("op", "attributes", "inputs"),
    [
        ("Fill", {"T": _FLOAT, "index_type": _INT}, [np.array([1 << 15, 1 << 15], I32), F32(1)]),
        ("Range", {"Tidx": _FLOAT}, [F32(0), F32(1e9), F32(1)]),
        ("SegmentSum", {"T": _FLOAT, "Tindices": _INT}, [np.ones((1, 4), F32), np.array([1 << 28], I32)]),
        ("RaggedRange", {"T": _INT, "Tsplits": _LONG}, [I32(0), I32(1 << 30), I32(1)]),
        ("TensorListReserve", {"element_dtype": _FLOAT, "shape_type": _INT}, [np.array([2], I32), I32(1 << 30)]),
        ("AsString", {"T": _FLOAT, "width": 1 << 30}, [np.ones(8, F32)]),
        ("StringJoin", {"N": 2}, [np.array(b"x" * 4096, object), np.full(1 << 18, b"", object)]),
        ("Tile", {"T": _STRING, "Tmultiples": _INT}, [np.array([b"x" * 4096], object), np.array([1 << 18], I32)]),
        ("StaticRegexReplace", {"pattern": "x", "rewrite": "y" * 4096}, [np.array([b"x" * (1 << 18)], object)]),
        ("DecodePng", {"channels": 3}, [np.array(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x40\0\0\0\x40\0\x08\x02\0\0\0", object)]),
    ],
)
def test_outputs_beyond_the_limits_are_refused_before_tensorflow_makes_them(op: str, attributes: Any, inputs: list[Any]) -> None:
    model, names = FlexModel(), []
    for place, value in enumerate(map(np.asarray, inputs)):
        model.tensor(f"x{place}", _STRING if value.dtype == object else value.dtype, [None] * value.ndim)
        names.append(f"x{place}")
    types = {"RaggedRange": [I64, I32], "TensorListReserve": [TensorType.VARIANT], "DecodePng": [np.uint8]}
    made = types.get(op, [F32 if op in ("Fill", "Range", "SegmentSum") else _STRING])
    for place, kind in enumerate(made):
        model.tensor(f"y{place}", kind, [])
    outputs = " ".join(f"y{place}" for place in range(len(made)))
    content = model.flex(op, " ".join(names), outputs, **attributes).content(" ".join(names), outputs)
    interpreter = opened(content, limits=Limits(max_arena_bytes=256 << 20, max_tensor_bytes=256 << 20))
    assert [report.op for report in interpreter.explain()] == ["flex"], interpreter.delegation_reports()
    with pytest.raises(LimitError):
        run(interpreter, *inputs)


def test_a_list_that_becomes_one_tensor_counts_its_elements() -> None:
    model = (
        FlexModel().tensor("n", I32).tensor("shape", I32, [1]).tensor("held", TensorType.VARIANT).tensor("y", F32, [None, None])
    )
    model.flex("TensorListReserve", "shape n", "held", element_dtype=_FLOAT, shape_type=_INT)
    model.flex("TensorListStack", "held shape", "y", element_dtype=_FLOAT)
    interpreter = opened(model.content("n shape", "y"), limits=Limits(max_arena_bytes=256 << 20))
    [y] = run(interpreter, I32(3), np.array([2], I32))
    assert y.tolist() == [[0, 0]] * 3
    with pytest.raises(LimitError):
        run(interpreter, I32(1 << 18), np.array([1 << 18], I32))


def test_empty_memory_does_not_show_what_was_there() -> None:
    model = (
        FlexModel()
        .tensor("shape", I32, [1], [1 << 12])
        .tensor("x", I32, [1 << 12])
        .tensor("e", I32, [1 << 12])
        .tensor("y", I32, [1 << 12])
    )
    model.flex("Empty", "shape", "e", dtype=_INT, init=False).flex("AddV2", "x e", "y", T=_INT)
    [y] = run(opened(model.content("x", "y")), np.zeros(1 << 12, I32))
    assert not y.any()


# Loading ----------------------------------------------------------------------------------------------------------


def test_tensorflow_is_imported_late_and_says_so_once() -> None:
    program = (
        "import sys, logging, numpy as np\n"
        "from oplet import Interpreter, load_delegate\n"
        "from plugins.flex_delegate.tests.flex_models import abs_model, run\n"
        "delegate = load_delegate('flex', {'num_threads': 3})\n"
        "print('tensorflow' in sys.modules)\n"
        "for _ in range(2):\n"
        "    interpreter = Interpreter(model_content=abs_model(), experimental_delegates=[delegate])\n"
        "    print(run(interpreter, np.array([-1, 0, 2], np.float32))[0].tolist())\n"
        "import tensorflow as tf; print(tf.config.threading.get_intra_op_parallelism_threads())\n"
    )
    done = run_child([sys.executable, "-c", program])
    assert done.stdout.splitlines() == ["False", "[1.0, 0.0, 2.0]", "[1.0, 0.0, 2.0]", "3"]
    assert done.stderr.count("TensorFlow is imported for the model's Flex operators") == 1


def test_a_number_of_threads_that_comes_too_late_is_told(caplog: pytest.LogCaptureFixture) -> None:
    from oplet_flex_delegate import library

    library._set_threads.cache_clear()
    tf.constant(1)
    with caplog.at_level(logging.WARNING, "oplet.plugins"):
        load = load_delegate("flex", {"num_threads": 61})
        interpreter = Interpreter(model_content=abs_model(), experimental_delegates=[load])
        run(interpreter, np.zeros(3, F32))
    assert "num_threads=61 has no effect" in caplog.text


@pytest.mark.sweep
def test_memory_stays_as_it_is_over_two_thousand_invokes() -> None:
    import resource

    interpreters = [opened(table()), opened(counter()), opened(drawn())]
    inputs = [np.array([b"b", b"c"], object), np.ones(3, F32), np.zeros(4, F32)]
    listing = opened(listed().flex("TensorListGetItem", "held zero shape", "y", element_dtype=_FLOAT).content("x", "y"))

    def once(number: int) -> None:
        for interpreter, value in zip(interpreters, inputs):
            run(interpreter, value)
        run(listing, np.full((2, 3), number, F32))
        run(interpreters[0], np.array([str(number).encode()] * (number % 7), object))

    for number in range(300):
        once(number)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(2000):
        once(number)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10
