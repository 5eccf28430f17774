"""The interpreter with ops of the tests' own: life cycle, memory, folding, dynamic shapes, errors."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, add_chain, add_one, like_input

from oplet import (
    Allocation,
    Context,
    Interpreter,
    Model,
    ModelBuilder,
    MutableOpResolver,
    Node,
    OpResolverType,
    PluginManager,
    Profiler,
    Registration,
    TensorBuilder,
    TensorType,
    ensure,
    ensure_type,
)
from oplet.errors import (
    InvokeError,
    ModelError,
    OpletError,
    OpNotFoundError,
    OpVersionError,
    PrepareError,
    SignatureError,
    StateError,
    TensorError,
    UnresolvedOpError,
    ViewError,
)
from oplet.interpreter import InterpreterWithCustomOps, SignatureRunner
from oplet_testing import invoke, one_op_model
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec


def resolver(**ops: Registration) -> MutableOpResolver:
    made = MutableOpResolver()
    made.add_custom("AddOne", Registration(prepare=like_input, invoke=add_one, pure=True))
    for name, registration in ops.items():
        made.add_custom(name, registration)
    return made


def served(length: int = 3, op: str = "AddOne", shape: tuple[int, ...] = (2, 3)) -> bytes:
    """A chain with a signature and a first dimension that is free."""
    builder = ModelBuilder()
    add_chain(builder, length, op=op, shape=shape, shape_signature=(-1, *shape[1:]))
    builder.add_signature("serve", {"x": 0}, {"y": length})
    return builder.to_bytes()


def make(content: bytes | None = None, **arguments: Any) -> Interpreter:
    arguments.setdefault("op_resolver", resolver())
    return Interpreter(model_content=content or served(), plugins=PluginManager(entry_points=()), **arguments)


def ready(content: bytes | None = None, **arguments: Any) -> Interpreter:
    interpreter = make(content, **arguments)
    interpreter.allocate_tensors()
    return interpreter


# Running -----------------------------------------------------------------------------------------------------


def test_a_chain_of_nodes_runs_in_order() -> None:
    x = np.arange(6, dtype=F32).reshape(2, 3)
    assert np.array_equal(invoke(ready(served(5)), x)[0], x + 5)


def test_a_resized_input_gives_a_resized_output() -> None:
    interpreter = ready()
    interpreter.resize_tensor_input(0, [7, 3])
    interpreter.allocate_tensors()
    assert invoke(interpreter, np.zeros((7, 3), F32))[0].shape == (7, 3)


def test_bind_is_called_once_and_its_thunk_each_time() -> None:
    calls: list[str] = []

    def bind(context: Context, node: Node) -> Callable[[], None]:
        calls.append("bind")
        source, target = node.inputs[0].data, node.outputs[0].data

        def thunk() -> None:
            calls.append("run")
            np.copyto(target, source)

        return thunk

    interpreter = ready(served(1, "Copy"), op_resolver=resolver(Copy=Registration(prepare=like_input, bind=bind)))
    for value in (1, 2):
        assert (invoke(interpreter, np.full((2, 3), value, F32))[0] == value).all()
    assert calls == ["bind", "run", "run"]


def test_signatures_run_by_name_and_resize_to_what_they_are_given() -> None:
    runner = make().get_signature_runner()
    assert isinstance(runner, SignatureRunner)
    assert runner(x=np.zeros((4, 3), F32))["y"].tolist() == [[3.0] * 3] * 4
    assert list(runner.get_input_details()) == ["x"]
    assert list(runner.get_output_details()) == ["y"]


def test_what_nothing_reads_any_more_gives_its_memory_away() -> None:
    interpreter = ready(served(50, shape=(64, 64)))
    assert interpreter._subgraphs[0].arena_bytes < 6 * 64 * 64 * 4


def test_intermediate_values_are_refused_rather_than_wrong() -> None:
    interpreter = ready(served(6))
    invoke(interpreter, np.zeros((2, 3), F32))
    with pytest.raises(TensorError, match="experimental_preserve_all_tensors"):
        interpreter.get_tensor(1)
    kept = ready(served(6), experimental_preserve_all_tensors=True)
    invoke(kept, np.zeros((2, 3), F32))
    assert [kept.get_tensor(i)[0, 0] for i in range(7)] == [0, 1, 2, 3, 4, 5, 6]


def test_the_input_outlives_the_invoke() -> None:
    interpreter = ready(served(9))
    x = np.full((2, 3), 5, F32)
    first = invoke(interpreter, x)[0]
    interpreter.invoke()
    assert np.array_equal(interpreter.get_tensor(9), first)
    assert np.array_equal(interpreter.get_tensor(0), x)


def test_the_profiler_sees_every_node_with_its_label() -> None:
    profiler = Profiler()
    labelled = Registration(prepare=like_input, invoke=add_one, profiling_string=lambda context, node: "mine")
    interpreter = ready(served(2, "Labelled"), op_resolver=resolver(Labelled=labelled), profiler=profiler)
    invoke(interpreter, np.zeros((2, 3), F32))
    assert [(e.node, e.op, e.label) for e in profiler.events] == [(0, "Labelled", "mine"), (1, "Labelled", "mine")]
    assert profiler.by_op()["mine"][0] == 2


def test_interpreters_in_several_threads_do_not_disturb_each_other() -> None:
    content = served(20, shape=(32, 32))
    wrong: list[int] = []

    def work(value: int) -> None:
        interpreter = ready(content)
        for _ in range(30):
            if not (invoke(interpreter, np.full((32, 32), value, F32))[0] == value + 20).all():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# Constants ---------------------------------------------------------------------------------------------------


def constant_then_add(runs: list[int]) -> tuple[bytes, MutableOpResolver]:
    def counted(context: Context, node: Node) -> None:
        runs.append(node.index)
        add_one(context, node)

    def total(context: Context, node: Node) -> None:
        np.add(node.inputs[0].data, node.inputs[1].data, node.outputs[0].data)

    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, c, d, y = (graph.add_tensor(n, F32, [3], data=np.ones(3, F32) if n == "c" else None) for n in "xcdy")
    graph.add_operator("Counted", [c], [d])
    graph.add_operator("Total", [x, d], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    made = resolver(
        Counted=Registration(prepare=like_input, invoke=counted, pure=True), Total=Registration(prepare=like_input, invoke=total)
    )
    return builder.to_bytes(), made


def test_a_pure_node_of_constants_runs_once_and_never_again() -> None:
    runs: list[int] = []
    content, ops = constant_then_add(runs)
    interpreter = ready(content, op_resolver=ops)
    for _ in range(3):
        assert invoke(interpreter, np.zeros(3, F32))[0].tolist() == [2, 2, 2]
    interpreter.resize_tensor_input(0, [1])
    interpreter.resize_tensor_input(0, [3])
    interpreter.allocate_tensors()
    assert invoke(interpreter, np.ones(3, F32))[0].tolist() == [3, 3, 3]
    assert runs == [0]


def test_what_was_computed_from_a_shape_follows_a_resize() -> None:
    def prepare_rows(context: Context, node: Node) -> None:
        context.set_constant(node.outputs[0], np.array(node.inputs[0].shape[:1], F32))

    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, rows, more = (graph.add_tensor(n, F32, [4] if n == "x" else [1]) for n in ("x", "rows", "more"))
    graph.add_operator("Rows", [x], [rows])
    graph.add_operator("AddOne", [rows], [more])
    graph.set_inputs(x)
    graph.set_outputs(more)
    ops = resolver(Rows=Registration(prepare=prepare_rows, invoke=lambda context, node: None, pure=True))
    interpreter = ready(builder.to_bytes(), op_resolver=ops)
    for count in (4, 9, 9, 4):
        interpreter.resize_tensor_input(0, [count])
        interpreter.allocate_tensors()
        assert invoke(interpreter, np.zeros(count, F32))[0].tolist() == [count + 1]


def test_constants_are_read_only_views_of_the_model(tmp_path: Path) -> None:
    content, ops = constant_then_add([])
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    one, two = (Interpreter(path, plugins=[], op_resolver=ops) for _ in range(2))
    a, b = (i._subgraphs[0].tensors[1].data for i in (one, two))
    assert np.shares_memory(a, b)
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 5


def test_a_constant_cannot_be_set_or_resized() -> None:
    content, ops = constant_then_add([])
    interpreter = ready(content, op_resolver=ops)
    with pytest.raises(TensorError, match="constant"):
        interpreter.set_tensor(1, np.zeros(3, F32))
    with pytest.raises(StateError, match="Attempting to resize a fixed-size tensor"):
        interpreter.resize_tensor_input(1, [4])


def test_packed_int4_and_int2_constants_come_unpacked() -> None:
    seen: list[Any] = []
    look = Registration(
        prepare=lambda context, node: seen.append(np.array(node.inputs[1].data)), invoke=lambda context, node: None
    )
    for kind, values in (
        (TensorType.INT4, [-8, 7, -1, 3, 5]),
        (TensorType.INT2, [-2, 1, 0, -1, 1]),
        (TensorType.UINT4, [15, 0, 8, 7, 1]),
    ):
        content = one_op_model("Look", [Spec(F32, [1]), Spec(kind, [5], data=np.array(values))], [Spec(F32, [1])])
        ready(content, op_resolver=resolver(Look=look))
        assert seen.pop().tolist() == values


# Dynamic shapes ----------------------------------------------------------------------------------------------


def nonzero_model() -> tuple[bytes, MutableOpResolver, list[tuple[int, ...]]]:
    prepared: list[tuple[int, ...]] = []

    def prepare_nonzero(context: Context, node: Node) -> None:
        context.set_dynamic(node.outputs[0])

    def nonzero(context: Context, node: Node) -> None:
        found = node.inputs[0].data[node.inputs[0].data != 0]
        context.resize_tensor(node.outputs[0], found.shape)
        np.copyto(node.outputs[0].data, found)

    def prepare_after(context: Context, node: Node) -> None:
        prepared.append(node.inputs[0].shape)
        like_input(context, node)

    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, found, more, y = (graph.add_tensor(n, F32, [4] if n == "x" else []) for n in ("x", "found", "more", "y"))
    graph.add_operator("Nonzero", [x], [found])
    graph.add_operator("After", [found], [more])
    graph.add_operator("AddOne", [more], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    ops = resolver(
        Nonzero=Registration(prepare=prepare_nonzero, invoke=nonzero), After=Registration(prepare=prepare_after, invoke=add_one)
    )
    return builder.to_bytes(), ops, prepared


def test_nodes_behind_a_dynamic_output_are_prepared_when_its_shape_is_known() -> None:
    content, ops, prepared = nonzero_model()
    interpreter = ready(content, op_resolver=ops)
    assert prepared == []
    assert invoke(interpreter, np.array([1, 0, 2, 0], F32))[0].tolist() == [3, 4]
    assert invoke(interpreter, np.array([0, 5, 6, 0], F32))[0].tolist() == [7, 8]
    assert prepared == [(2,)]  # the same shape is not prepared twice
    assert invoke(interpreter, np.array([1, 2, 3, 0], F32))[0].tolist() == [3, 4, 5]
    assert invoke(interpreter, np.zeros(4, F32))[0].tolist() == []
    assert prepared == [(2,), (3,), (0,)]


# State -------------------------------------------------------------------------------------------------------


def counter_model() -> tuple[bytes, MutableOpResolver]:
    def count(context: Context, node: Node) -> None:
        node.inputs[1].data[...] += node.inputs[0].data
        np.copyto(node.outputs[0].data, node.inputs[1].data)

    content = one_op_model("Count", [Spec(F32, [2]), Spec(F32, [2], variable=True)], [Spec(F32, [2])])
    return content, resolver(Count=Registration(prepare=like_input, invoke=count))


def test_variables_live_on_between_invokes_and_are_reset_on_request() -> None:
    content, ops = counter_model()
    interpreter = ready(content, op_resolver=ops)
    ones = np.ones(2, F32)
    assert [invoke(interpreter, ones)[0][0] for _ in range(3)] == [1, 2, 3]
    interpreter.reset_all_variables()
    assert invoke(interpreter, ones)[0][0] == 1


@pytest.mark.parametrize("variable", [False, True])
def test_persistent_temporaries_that_are_variables_are_reset_like_the_model_s(variable: bool) -> None:
    def prepare(context: Context, node: Node) -> None:
        like_input(context, node)
        context.add_temporary(node, node.inputs[0].shape, allocation=Allocation.PERSISTENT).is_variable = variable

    def count(context: Context, node: Node) -> None:
        node.temporaries[0].data[...] += node.inputs[0].data
        np.copyto(node.outputs[0].data, node.temporaries[0].data)

    content = one_op_model("Count", [Spec(F32, [2])], [Spec(F32, [2])])
    interpreter = ready(content, op_resolver=resolver(Count=Registration(prepare=prepare, invoke=count)))
    ones = np.ones(2, F32)
    assert [invoke(interpreter, ones)[0][0] for _ in range(3)] == [1, 2, 3]
    interpreter.reset_all_variables()
    assert invoke(interpreter, ones)[0][0] == (1 if variable else 4)


def test_persistent_temporaries_keep_their_value_and_arena_ones_are_there() -> None:
    def prepare(context: Context, node: Node) -> None:
        like_input(context, node)
        context.add_temporary(node, (2, 3), allocation=Allocation.PERSISTENT)
        context.add_temporary(node, (5,), TensorType.INT64)

    def compute(context: Context, node: Node) -> None:
        kept, scratch = node.temporaries
        kept.data[...] += 1
        scratch.data.fill(7)
        np.copyto(node.outputs[0].data, kept.data)

    interpreter = ready(served(1, "Keep"), op_resolver=resolver(Keep=Registration(prepare=prepare, invoke=compute)))
    x = np.zeros((2, 3), F32)
    assert [invoke(interpreter, x)[0][0, 0] for _ in range(3)] == [1, 2, 3]


# Life cycle of kernels ---------------------------------------------------------------------------------------


def counting(calls: list[str], **fail: bool) -> Registration:
    def step(name: str) -> None:
        calls.append(name)
        if fail.get(name):
            raise ValueError(f"{name} went wrong")

    def init(context: Context, buffer: Any) -> str:
        step("init")
        return f"state of {bytes(buffer)!r}"

    def prepare(context: Context, node: Node) -> None:
        step("prepare")
        assert node.user_data == "state of b''"
        like_input(context, node)

    def compute(context: Context, node: Node) -> None:
        step("invoke")
        add_one(context, node)

    def free(context: Context, user_data: Any) -> None:
        step("free")
        assert user_data == "state of b''"

    return Registration(init=init, prepare=prepare, invoke=compute, free=free)


def test_init_is_called_once_a_node_and_free_once_an_init() -> None:
    calls: list[str] = []
    interpreter = ready(served(2, "Count"), op_resolver=resolver(Count=counting(calls)))
    invoke(interpreter, np.zeros((2, 3), F32))
    assert calls == ["init", "init", "prepare", "prepare", "invoke", "invoke"]
    del interpreter
    gc.collect()
    assert calls[6:] == ["free", "free"]


def test_free_follows_init_also_after_a_failure() -> None:
    calls: list[str] = []
    ops = resolver(Count=counting(calls), Bad=counting([], init=True))
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y, z = (graph.add_tensor(n, F32, [2]) for n in "xyz")
    graph.add_operator("Count", [x], [y])
    graph.add_operator("Bad", [y], [z])
    graph.set_inputs(x)
    graph.set_outputs(z)
    with pytest.raises(PrepareError, match=r"ValueError: init went wrong. Node number 1 \(Bad\) failed to initialize"):
        make(builder.to_bytes(), op_resolver=ops)
    assert calls == ["init", "free"]


def test_a_failing_free_names_the_node_after_every_other_was_freed() -> None:
    calls: list[str] = []
    interpreter = ready(served(3, "Count"), op_resolver=resolver(Count=counting(calls, free=True)))
    assert (invoke(interpreter, np.zeros((2, 3), F32))[0] == 3).all()
    with pytest.raises(PrepareError, match=r"ValueError: free went wrong. Node number 0 \(Count\) failed to free"):
        interpreter.close()
    assert calls.count("init") == calls.count("free") == 3
    with pytest.raises(StateError, match="not ready"):
        interpreter.invoke()
    interpreter.close()
    assert calls.count("free") == 3


@pytest.mark.parametrize("step", ["prepare", "invoke"])
def test_every_init_has_its_free_when_a_later_step_fails(step: str) -> None:
    calls: list[str] = []
    interpreter = make(served(2, "Count"), op_resolver=resolver(Count=counting(calls, **{step: True})))
    runner = interpreter.get_signature_runner()
    with pytest.raises(OpletError, match=f"{step} went wrong"):
        runner(x=np.zeros((2, 3), F32))
    interpreter.close()
    assert calls.count("init") == calls.count("free") == 2


def test_a_failing_prepare_names_the_node_and_leaves_the_interpreter_usable() -> None:
    calls: list[str] = []

    def picky(context: Context, node: Node) -> None:
        calls.append("prepare")
        ensure(node.inputs[0].shape[0] < 5, f"at most 4 rows, not {node.inputs[0].shape[0]}")
        like_input(context, node)

    interpreter = ready(served(1, "Picky"), op_resolver=resolver(Picky=Registration(prepare=picky, invoke=add_one)))
    interpreter.resize_tensor_input(0, [9, 3])
    with pytest.raises(PrepareError, match=r"at most 4 rows, not 9. Node number 0 \(Picky\) failed to prepare.*tensor 0 't0'"):
        interpreter.allocate_tensors()
    with pytest.raises(StateError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    interpreter.resize_tensor_input(0, [4, 3])
    interpreter.allocate_tensors()
    assert invoke(interpreter, np.zeros((4, 3), F32))[0].shape == (4, 3)


def test_a_failing_invoke_names_the_node_and_leaves_the_interpreter_usable() -> None:
    def compute(context: Context, node: Node) -> None:
        if node.inputs[0].data[0, 0] == 1:
            raise IndexError("row 1")
        add_one(context, node)

    builder_ops = resolver(Touchy=Registration(prepare=like_input, invoke=compute))
    interpreter = ready(served(3, "Touchy"), op_resolver=builder_ops)
    with pytest.raises(
        InvokeError, match=r"IndexError: row 1. Node number 1 \(Touchy\) failed to invoke in the kernel of application"
    ):
        invoke(interpreter, np.zeros((2, 3), F32))
    assert invoke(interpreter, np.full((2, 3), 5, F32))[0][0, 0] == 8


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_an_interpreter_goes_with_all_it_holds_when_it_is_dropped(steps: int) -> None:
    gc.disable()  # nothing waits for it
    try:
        interpreter = make()
        if steps > 0:
            interpreter.allocate_tensors()
        if steps > 1:
            interpreter.invoke()
        subgraph, session = weakref.ref(interpreter._subgraphs[0]), weakref.ref(interpreter._runtime.session)
        del interpreter
        assert subgraph() is None
        assert session() is None
    finally:
        gc.enable()


# Errors that users meet --------------------------------------------------------------------------------------


def test_all_unresolved_custom_ops_are_named_at_once_when_allocating() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    tensors = [graph.add_tensor(f"t{i}", F32, [1]) for i in range(5)]
    for i, op in enumerate(("Atan", "Nobodys", "FlexAdd", "Anothers")):
        graph.add_operator(op, [tensors[i]], [tensors[i + 1]])
    graph.set_inputs(tensors[0])
    graph.set_outputs(tensors[-1])
    interpreter = make(builder.to_bytes())
    with pytest.raises(UnresolvedOpError) as caught:
        interpreter.allocate_tensors()
    message = str(caught.value)
    assert "Encountered unresolved custom op: Atan." in message
    assert "pip install oplet-atan-op" in message
    assert "Encountered unresolved custom op: Nobodys." in message
    assert message.count("No package that brings") == 1
    assert "The same holds for Anothers." in message
    assert "Select TensorFlow op(s), included in the given model" in message
    assert caught.value.ops == ("Atan", "Nobodys", "FlexAdd", "Anothers")
    assert isinstance(caught.value, RuntimeError)


def test_a_missing_builtin_s_error_names_the_custom_ops_that_are_missing_too() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y, z = (graph.add_tensor(n, F32, [1]) for n in "xyz")
    graph.add_operator("Nobodys", [x], [y])
    graph.add_operator("RELU", [y], [z], version=4)
    graph.set_inputs(x)
    graph.set_outputs(z)
    with pytest.raises(OpNotFoundError, match=r"'RELU' version '4'.*Encountered unresolved custom op: Nobodys\."):
        make(builder.to_bytes())


def test_many_missing_builtins_are_told_with_the_advice_once() -> None:
    spec = Spec(F32, [1])
    names = dict.fromkeys("abcdefgh", spec)
    ops = [
        Op(op, f"{source}", f"{target}")
        for op, source, target in zip(["RELU", "TANH", "ABS", "NEG", "EXP", "LOG", "RELU"], "abcdefg", "bcdefgh")
    ]
    with pytest.raises(OpNotFoundError) as missing:
        make(graph_model(Graph(names, "a", "h", ops)))
    text = str(missing.value)
    assert text.count("pip install") == text.count("No installed package serves") == 1
    assert "2 nodes from node 0 on need it" in text
    for op in ("TANH' version '1' (node 1)", "ABS' version '1' (node 2)", "LOG' version '1' (node 5)"):
        assert op in text
    assert len(text) < 600


def test_a_missing_builtin_and_a_version_too_new_are_two_messages() -> None:
    content = one_op_model("RELU", [Spec(F32, [1])], [Spec(F32, [1])], version=99)
    with pytest.raises(OpNotFoundError) as missing:
        make(content)
    ops = resolver()
    ops.add_builtin("RELU", Registration(prepare=like_input, invoke=add_one), 1, 3)
    with pytest.raises(OpVersionError) as newer:
        make(content, op_resolver=ops)
    words = "Didn't find op for builtin opcode 'RELU' version '99'."
    assert words in str(missing.value)
    assert "pip install oplet-builtin-ops" in str(missing.value)
    assert not isinstance(missing.value, OpVersionError)
    assert words + " An older version of this builtin might be supported." in str(newer.value)
    assert "versions 1 to 3" in str(newer.value)
    assert isinstance(newer.value, ValueError)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x1c\0\0\0", "Model provided must have at least 7 bytes to hold identifier"),
        (b"\x1c\0\0\0TFL2" + bytes(40), "Model provided has model identifier 'TFL2', should be 'TFL3'"),
        (b"PK\x03\x04" + bytes(40), "zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\xff\xff\xff\x7fTFL3" + bytes(40), "The model is not a valid Flatbuffer buffer: root offset leads outside the file"),
        (served()[: len(served()) // 2], "The model is not a valid Flatbuffer buffer"),
    ],
)
def test_a_file_that_is_no_model_is_one_clear_error(content: bytes, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        make(content)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_schema_version_is_refused_in_litert_s_words() -> None:
    model = Model.from_bytes(served())
    model.root.version = 2
    with pytest.raises(ModelError, match="Model provided is schema version 2 not equal to supported version 3"):
        make(model.to_bytes())


def test_a_missing_or_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"Could not open '.*nope.tflite'. The model allocation is null/empty"):
        Interpreter(tmp_path / "nope.tflite", plugins=[])
    (tmp_path / "empty.tflite").touch()
    with pytest.raises(ModelError, match="empty"):
        Interpreter(tmp_path / "empty.tflite", plugins=[])


@pytest.mark.parametrize("kind", [str, Path])
def test_what_is_no_path_of_a_model_is_told_with_what_to_do(tmp_path: Path, kind: Any) -> None:
    for address in ("https://example.com/model.tflite", "gs://bucket/model.tflite"):
        with pytest.raises(ModelError, match="it is an address: download the file, and give its path"):
            Interpreter(kind(address), plugins=[])
    with pytest.raises(ModelError, match="check the path"):
        Interpreter(kind("C:/model.tflite"), plugins=[])
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(ModelError, match="it is a SavedModel: convert it with TensorFlow's converter"):
        Interpreter(kind(tmp_path), plugins=[])


def test_a_path_of_bytes_is_a_path_and_a_model_s_bytes_are_none(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(served())
    Interpreter(os.fsencode(tmp_path / "model.tflite"), plugins=[])
    with pytest.raises(ModelError, match="these are a model's bytes: give them as model_content"):
        Interpreter(served(), plugins=[])


@pytest.mark.parametrize("index", ["x", {"index": 0}, np.zeros((1, 2)), 0.0, None, [0]], ids=lambda index: type(index).__name__)
def test_an_index_that_is_no_integer_is_told_by_its_type(index: Any) -> None:
    interpreter = make(served())
    for call in (
        lambda: interpreter.set_tensor(index, np.zeros(1)),
        lambda: interpreter.get_tensor(index),
        lambda: interpreter.tensor(index)(),
        lambda: interpreter.resize_tensor_input(index, [1]),
    ):
        with pytest.raises(
            TypeError, match=f"'index' of a tensor's details is an integer; this is of type {type(index).__name__}"
        ):
            call()


def test_the_constructor_refuses_what_litert_refuses() -> None:
    with pytest.raises(ValueError, match="`model_path` or `model_content` must be specified."):
        Interpreter()
    with pytest.raises(ValueError, match="Can't both provide `model_path` and `model_content`"):
        Interpreter("x", b"y")
    with pytest.raises(ValueError, match="num_threads should >= 1"):
        make(num_threads=0)
    with pytest.raises(ValueError, match="type of num_threads should be int"):
        make(num_threads="2")
    with pytest.raises(ValueError, match="Unrecognized passed in op resolver type: 1"):
        make(experimental_op_resolver_type=1)
    for kind in OpResolverType:
        make(experimental_op_resolver_type=kind)


def test_values_that_do_not_fit_are_refused_in_litert_s_words() -> None:
    interpreter = make()
    with pytest.raises(ValueError, match=r"Got value of type FLOAT64 but expected type FLOAT32 for input 0, name: t0 "):
        interpreter.set_tensor(0, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="Dimension mismatch. Got 1 but expected 2 for input 0."):
        interpreter.set_tensor(0, np.zeros(3, F32))
    with pytest.raises(ValueError, match="Dimension mismatch. Got 4 but expected 3 for dimension 1 of input 0."):
        interpreter.set_tensor(0, np.zeros((2, 4), F32))
    with pytest.raises(ValueError, match="Tensor is unallocated. Try calling allocate_tensors\\(\\) first"):
        interpreter.set_tensor(0, np.zeros((2, 3), F32))
    with pytest.raises(ValueError, match="Invalid tensor index 99 exceeds max tensor index 4"):
        interpreter.set_tensor(99, np.zeros((2, 3), F32))
    with pytest.raises(ValueError, match="Invalid tensor index -1"):
        interpreter.get_tensor(-1)
    with pytest.raises(ValueError, match="Tensor data is null. Run allocate_tensors\\(\\) first"):
        interpreter.get_tensor(0)
    with pytest.raises(ValueError, match="Invalid subgraph index 5 exceeds max subgraph index 1"):
        interpreter.get_tensor(0, 5)
    with pytest.raises(ValueError, match="subgraph_index is out of range: 9 for the model, which has 1 subgraphs."):
        interpreter.get_tensor_details(9)
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        interpreter.invoke()


def test_arrays_of_any_layout_are_copied_in() -> None:
    interpreter = ready()
    wanted = np.arange(6, dtype=F32).reshape(2, 3)
    for value in (wanted.copy("F"), np.repeat(wanted, 2, axis=1)[:, ::2], wanted.astype(">f4").astype(F32), wanted.tolist()):
        if isinstance(value, list):
            with pytest.raises(ValueError, match="FLOAT64"):
                interpreter.set_tensor(0, value)
        else:
            assert np.array_equal(invoke(interpreter, value)[0], wanted + 3)


def test_strict_resizing_changes_free_dimensions_only() -> None:
    interpreter = make()
    interpreter.resize_tensor_input(0, [9, 3], strict=True)
    with pytest.raises(
        RuntimeError, match="Attempting to resize dimension 1 of tensor 0 with value 3 to 4. ResizeInputTensorStrict only"
    ):
        interpreter.resize_tensor_input(0, [9, 4], strict=True)
    with pytest.raises(RuntimeError, match="negative"):
        interpreter.resize_tensor_input(0, [-9, 3])
    with pytest.raises(RuntimeError, match="no tensor 77"):
        interpreter.resize_tensor_input(77, [1])


@pytest.mark.parametrize(("shape", "dims"), [(7, 0), ("7", 0), ([[7, 3]], 2), (np.zeros((2, 1), int), 2)])
def test_a_shape_has_one_dimension_as_in_litert(shape: Any, dims: int) -> None:
    with pytest.raises(ValueError, match=f"which is no shape: Shape should be 1D instead of {dims}.") as caught:
        make().resize_tensor_input(0, shape)
    assert "\n" not in str(caught.value)


def test_signature_errors_use_litert_s_words() -> None:
    interpreter = make()
    with pytest.raises(SignatureError, match='Invalid signature_key provided: "nope".'):
        interpreter.get_signature_runner("nope")
    runner = interpreter.get_signature_runner("serve")
    with pytest.raises(
        ValueError, match="Invalid number of inputs provided for running a SignatureDef, expected 1 vs provided 0"
    ):
        runner()
    with pytest.raises(ValueError, match=r"Invalid Input name \(z\) for SignatureDef"):
        runner(z=np.zeros((2, 3), F32))


# Views -------------------------------------------------------------------------------------------------------


def test_a_view_shows_the_tensor_s_memory() -> None:
    interpreter = ready()
    view_of_input = interpreter.tensor(0)
    view_of_input().fill(4)
    interpreter.invoke()
    assert interpreter.tensor(3)()[1, 2] == 7


@pytest.mark.parametrize(
    "hold", [lambda view: view, lambda view: view[1:], lambda view: view.T[0], lambda view: view.reshape(-1)]
)
def test_while_a_view_or_a_slice_of_it_lives_nothing_may_move(hold: Callable[[Any], Any]) -> None:
    interpreter = ready()
    held = hold(interpreter.tensor(0)())
    for method in (interpreter.invoke, interpreter.allocate_tensors, lambda: interpreter.resize_tensor_input(0, [1, 3])):
        with pytest.raises(ViewError, match="There is at least 1 reference to internal data"):
            method()
    del held
    interpreter.invoke()


# Strings -----------------------------------------------------------------------------------------------------


def test_string_tensors_take_and_give_bytes() -> None:
    def upper(context: Context, node: Node) -> None:
        node.outputs[0].data[...] = [value.upper() for value in node.inputs[0].data]

    content = one_op_model("Upper", [Spec(TensorType.STRING, [3])], [Spec(TensorType.STRING, [3])])
    interpreter = ready(content, op_resolver=resolver(Upper=Registration(prepare=like_input, invoke=upper)))
    assert interpreter.get_input_details()[0]["dtype"] is np.bytes_
    for value in (np.array(["a", "bc", "ü"]), np.array([b"a", b"bc", "ü".encode()]), np.array(["a", b"bc", "ü"], object)):
        assert invoke(interpreter, value)[0].tolist() == [b"A", b"BC", "ü".encode()]
    with pytest.raises(TensorError, match="expected type STRING"):
        interpreter.set_tensor(0, np.zeros(3, F32))
    with pytest.raises(TensorError, match="element 1 .* is a int"):
        interpreter.set_tensor(0, np.array(["a", 5, "b"], object))


def test_string_constants_are_read_from_the_file() -> None:
    seen: list[Any] = []
    look = Registration(
        prepare=lambda context, node: seen.extend(node.inputs[1].data.tolist()), invoke=lambda context, node: None
    )
    content = one_op_model("Look", [Spec(F32, [1]), np.array([b"one", b"", b"three"], object)], [Spec(F32, [1])])
    ready(content, op_resolver=resolver(Look=look))
    assert seen == [b"one", b"", b"three"]


# Resolvers ---------------------------------------------------------------------------------------------------


def test_custom_op_registerers_add_to_a_resolver() -> None:
    def register(ops: MutableOpResolver) -> None:
        ops.add_custom("Mine", Registration(prepare=like_input, invoke=add_one))

    interpreter = InterpreterWithCustomOps([register], model_content=served(2, "Mine"), plugins=[])
    interpreter.allocate_tensors()
    assert invoke(interpreter, np.zeros((2, 3), F32))[0][0, 0] == 2
    with pytest.raises(ValueError, match="Looking up symbol 'TF_Register' failed: .* not names of C\\+\\+ symbols"):
        InterpreterWithCustomOps(["TF_Register"], model_content=served(2, "Mine"), plugins=[])
    with pytest.raises(OpletError, match="custom_op_registerers has 3, which is no function"):
        InterpreterWithCustomOps([3], model_content=served(2, "Mine"), plugins=[])


def test_explain_names_who_serves_each_node() -> None:
    reports = make(served(2)).explain()
    assert [(r.subgraph, r.node, r.op, r.version, r.plugin) for r in reports] == [
        (0, 0, "AddOne", 1, "application"),
        (0, 1, "AddOne", 1, "application"),
    ]


# Tensors that kernels add ------------------------------------------------------------------------------------


def test_the_guide_s_way_of_scratch_works_init_adds_the_tensor_and_prepare_sizes_it() -> None:
    class OpData:
        temp_tensor_index = -1

    def init(context: Context, buffer: Any) -> OpData:
        data = OpData()
        data.temp_tensor_index = context.add_tensor(TensorBuilder(TensorType.INT32, "scratch"))
        return data

    def prepare(context: Context, node: Node) -> None:
        scratch = context.tensors[node.user_data.temp_tensor_index]
        context.resize_tensor(scratch, (node.inputs[0].shape[0],))
        node.temporaries = [scratch]
        like_input(context, node)

    def compute(context: Context, node: Node) -> None:
        [scratch] = node.temporaries
        assert (scratch.type, scratch.allocation) == (TensorType.INT32, Allocation.ARENA)
        scratch.data[...] = np.arange(scratch.size)
        np.add(node.inputs[0].data, scratch.data[:, None], node.outputs[0].data)

    ops = resolver(Guide=Registration(init=init, prepare=prepare, invoke=compute))
    interpreter = ready(served(2, "Guide"), op_resolver=ops)
    assert invoke(interpreter, np.zeros((2, 3), F32))[0].tolist() == [[0.0] * 3, [2.0] * 3]
    interpreter.resize_tensor_input(0, [3, 3])
    interpreter.allocate_tensors()
    assert invoke(interpreter, np.zeros((3, 3), F32))[0][:, 0].tolist() == [0, 2, 4]
    assert [d["name"] for d in interpreter.get_tensor_details()][-2:] == ["scratch", "scratch"]


@pytest.mark.parametrize("allocation", [Allocation.CONSTANT, Allocation.COMPUTED, Allocation.NONE])
def test_a_kernel_may_not_ask_for_memory_of_another_kind(allocation: Allocation) -> None:
    def prepare(context: Context, node: Node) -> None:
        context.add_tensor(TensorBuilder(allocation=allocation))

    ops = resolver(Asks=Registration(prepare=prepare, invoke=add_one))
    with pytest.raises(PrepareError, match=f"{allocation.name}; ARENA, PERSISTENT and DYNAMIC are possible"):
        ready(served(1, "Asks"), op_resolver=ops)


def test_a_check_of_types_names_what_is_wrong() -> None:
    interpreter = make()
    tensor = interpreter._subgraphs[0].tensors[0]
    ensure_type(tensor, TensorType.INT8, TensorType.FLOAT32)
    with pytest.raises(PrepareError, match=r"tensor 0 't0' .* is of type FLOAT32, this op takes INT8 or UINT8"):
        ensure_type(tensor, TensorType.INT8, TensorType.UINT8)
