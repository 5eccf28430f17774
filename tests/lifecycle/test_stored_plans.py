"""A plan on disk runs a model in another process without its kernels, and nothing but the time can tell it from one that was prepared there."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.children import run_child
from tests.machine_code import need_stored_plans

from oplet import (
    Interpreter,
    Limits,
    ModelBuilder,
    MutableOpResolver,
    OpResolver,
    Profiler,
    Provenance,
    Registration,
    decline,
    load_delegate,
)
from oplet.errors import InvokeError, OpletError, StateError, TensorError
from oplet.runtime.memory import plan_files, remembered, stored_plan
from oplet.runtime.memory.plan_files import PlanName, note_opened
from oplet.runtime.memory.remembered import STORE_VARIABLE
from oplet.schema.options import AddOptions, Conv2DOptions, GatherOptions

need_stored_plans()
restoring = pytest.importorskip("oplet_compiled_ops.threads.restoring")

SIDE, DEPTH = 8, 16
X, OUT = 0, 6


def model(seed: int = 0, bytes_of_weights: Any = None) -> bytes:
    """Two layers with weights of halves, which become floats while the graph is prepared, and what is between them."""
    random = np.random.default_rng(seed)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", "float32", (1, SIDE, SIDE, DEPTH))
    halves = graph.add_tensor("halves", "float16", (DEPTH, 3, 3, DEPTH), data=random.standard_normal((DEPTH, 3, 3, DEPTH)) / 8)
    weights = graph.add_tensor("weights", "float32", (DEPTH, 3, 3, DEPTH), data=bytes_of_weights)
    bias = graph.add_tensor("bias", "float32", (DEPTH,), data=random.standard_normal(DEPTH))
    y, z = (graph.add_tensor(name, "float32", (1, SIDE, SIDE, DEPTH)) for name in "yz")
    out = graph.add_tensor("out", "float32", (1, SIDE, SIDE, DEPTH))
    graph.add_operator("DEQUANTIZE", [halves], [weights])
    graph.add_operator("CONV_2D", [x, weights, bias], [y], Conv2DOptions(stride_w=1, stride_h=1))
    graph.add_operator("LOGISTIC", [y], [z])
    graph.add_operator("CONV_2D", [z, weights, bias], [out], Conv2DOptions(stride_w=1, stride_h=1))
    graph.set_inputs(x)
    graph.set_outputs(out)
    builder.add_signature("serving_default", {"x": x}, {"out": out})
    return builder.to_bytes()


def picking() -> bytes:
    """Rows of a table by their numbers, which may be out of range."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    rows = graph.add_tensor("rows", "int32", (4,))
    table = graph.add_tensor("table", "float32", (5, 3), data=np.arange(15))
    found = graph.add_tensor("found", "float32", (4, 3))
    graph.add_operator("GATHER", [table, rows], [found], GatherOptions(axis=0))
    graph.set_inputs(rows)
    graph.set_outputs(found)
    return builder.to_bytes()


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The folder of plans of these tests alone."""
    monkeypatch.setenv(STORE_VARIABLE, "")
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path / "cache"))
    gc.collect()
    remembered.forget_plans()
    yield tmp_path / "cache" / "plans"
    remembered.forget_plans()


def value(seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((1, SIDE, SIDE, DEPTH)).astype(np.float32)


def opened(content: bytes | Path, **settings: Any) -> Interpreter:
    given: dict[str, Any] = {"model_path": os.fspath(content)} if isinstance(content, Path) else {"model_content": content}
    interpreter = Interpreter(**given, **settings)
    interpreter.allocate_tensors()
    return interpreter


def answer(interpreter: Interpreter, seed: int = 0) -> Any:
    interpreter.set_tensor(X, value(seed))
    interpreter.invoke()
    return interpreter.get_tensor(OUT)


def is_restored(interpreter: Interpreter) -> bool:
    return interpreter._subgraphs[0].stored is not None


def plans(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.plan")) if folder.exists() else []


def kept(content: bytes | Path, run: Callable[[Interpreter], Any] = answer, **settings: Any) -> None:
    """Open and run a model as often as it takes until its plan is on disk."""
    for _ in range(2):
        interpreter = opened(content, **settings)
        run(interpreter)
    del interpreter
    remembered.forget_plans()


def both(content: bytes | Path, run: Callable[[Interpreter], Any] = answer) -> tuple[Interpreter, Interpreter]:
    """An interpreter that has prepared a model, and one that has its plan from disk."""
    kept(content, run)
    restored = opened(content)
    assert is_restored(restored)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STORE_VARIABLE, "off")
        prepared = opened(content)
    assert not is_restored(prepared)
    return prepared, restored


def test_the_plan_is_stored_when_a_model_is_opened_again_and_gives_the_same_answers(folder: Path) -> None:
    content = model()
    first = opened(content)
    answer(first)
    assert not plans(folder)
    second = opened(content)
    answer(second)
    assert len(plans(folder)) == 1
    assert not is_restored(second)
    third = opened(content)
    assert is_restored(third)
    assert not third.get_tensor(X).any()
    assert not third.get_tensor(OUT).any()
    for seed in range(3):
        np.testing.assert_array_equal(answer(third, seed), answer(first, seed))
    assert is_restored(third)


@pytest.mark.sweep
def test_another_process_runs_it_without_kernels(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model())
    np.save(tmp_path / "x.npy", value())
    script = """
import sys
import numpy as np
from oplet import Interpreter

interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(0, np.load(sys.argv[2]))
interpreter.invoke()
np.save(sys.argv[3], interpreter.get_tensor(6))
print(*[name for name in sys.modules if name.startswith(("oplet_builtin_ops.", "oplet_compiled_ops.ops", "numba", "llvmlite", "pluggy"))])
"""
    imported = []
    for number in range(3):
        arguments = [sys.executable, "-c", script, path, tmp_path / "x.npy", tmp_path / f"{number}.npy"]
        imported.append(run_child(arguments).stdout.split())
    assert plans(folder)
    assert imported[0]
    assert imported[2] == []
    np.testing.assert_array_equal(np.load(tmp_path / "2.npy"), np.load(tmp_path / "0.npy"))


def test_models_of_the_same_size_have_their_own_plans_even_under_one_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlanName, "number", b"one for all.")
    one, other = model(0), model(1)
    assert len(one) == len(other)
    kept(one)
    expected = answer(opened(one))
    assert len(plans(folder)) == 1
    stranger = opened(other)
    assert not is_restored(stranger)
    theirs = answer(stranger)
    assert (theirs != expected).any()
    restored = opened(other)
    assert is_restored(restored)
    np.testing.assert_array_equal(answer(restored), theirs)


def test_bytes_in_the_file_are_not_the_value_of_what_a_node_writes() -> None:
    wanted = answer(opened(model()))
    prepared, restored = both(model(bytes_of_weights=np.ones((DEPTH, 3, 3, DEPTH))))
    np.testing.assert_array_equal(answer(prepared), wanted)
    np.testing.assert_array_equal(answer(restored), wanted)


def test_a_file_that_changed_is_prepared_anew(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model(0))
    kept(path)
    assert is_restored(opened(path))
    path.unlink()
    path.write_bytes(model(1))
    changed = opened(path)
    assert not is_restored(changed)
    np.testing.assert_array_equal(answer(changed), answer(opened(model(1))))


def test_a_damaged_file_is_no_plan(folder: Path) -> None:
    content = model()
    kept(content)
    [path] = plans(folder)
    whole = path.read_bytes()
    expected = answer(opened(content))
    size = len(whole)
    places = [0, 20, 30, 70, 200, 5000, *range(8192, size, size // 40), size - 1]
    variants = [whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :] for place in places]
    variants += [b"", whole[:10], whole[:100], whole[: size // 2], whole[:-1], whole + b"\0"]
    refused = 0
    for variant in variants:
        path.unlink()
        path.write_bytes(variant)
        remembered.forget_plans()
        interpreter = opened(content)
        refused += not is_restored(interpreter)
        np.testing.assert_array_equal(answer(interpreter), expected)
    assert refused >= len(variants) - 6  # bytes between the parts mean nothing


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_a_file_that_others_may_write_is_no_plan(folder: Path) -> None:
    kept(model())
    [path] = plans(folder)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o660)
    remembered.forget_plans()
    assert not is_restored(opened(model()))
    path.chmod(0o600)
    remembered.forget_plans()
    assert is_restored(opened(model()))


@pytest.mark.parametrize(
    "settings",
    [
        {"experimental_preserve_all_tensors": True},
        {"num_threads": 2},
        {"limits": Limits(max_seconds=100)},
        {"profiler": Profiler()},
        {"checks": True},
        {"release_dynamic_tensors": True},
        {"op_resolver": MutableOpResolver()},
        {"plugins": ["oplet-builtin-ops"]},
        {"prefer": ["oplet-builtin-ops"]},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_other_settings_take_no_plan(settings: dict[str, Any]) -> None:
    content = model()
    kept(content)
    assert is_restored(opened(content))
    interpreter = opened(content, **settings)
    assert not is_restored(interpreter)
    np.testing.assert_allclose(answer(interpreter), answer(opened(content)), rtol=1e-4, atol=1e-5)


def test_the_switch_keeps_plans_from_being_stored_and_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STORE_VARIABLE, "off")
    kept(model())
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_no_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path / "file"))
    kept(model())
    assert not is_restored(opened(model()))


def test_a_model_that_keeps_state_is_never_stored(folder: Path) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, "float32", (1, SIDE, SIDE, DEPTH)) for name in "xy")
    graph.add_tensor("state", "float32", (1,), is_variable=True)
    graph.add_operator("LOGISTIC", [x], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    kept(builder.to_bytes(), lambda interpreter: interpreter.invoke())
    assert not plans(folder)


def test_a_resize_prepares_it_anew() -> None:
    prepared, restored = both(model())
    for interpreter in (prepared, restored):
        interpreter.resize_tensor_input(X, (2, SIDE, SIDE, DEPTH))
        interpreter.allocate_tensors()
        interpreter.set_tensor(X, np.concatenate([value(0), value(1)]))
        interpreter.invoke()
    assert not is_restored(restored)
    np.testing.assert_array_equal(restored.get_tensor(OUT), prepared.get_tensor(OUT))
    for interpreter in (prepared, restored):
        interpreter.resize_tensor_input(X, (1, SIDE, SIDE, DEPTH))
        interpreter.allocate_tensors()
    np.testing.assert_array_equal(answer(restored), answer(prepared))


def test_a_resize_before_it_allocates_takes_no_plan() -> None:
    kept(model())
    interpreter = Interpreter(model_content=model())
    interpreter.resize_tensor_input(X, (2, SIDE, SIDE, DEPTH))
    interpreter.allocate_tensors()
    assert not is_restored(interpreter)


@pytest.mark.parametrize("installed", ["another library", "none"])
def test_a_plan_counts_only_with_the_library_of_kernels_that_it_was_made_with(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = model()
    kept(content)
    expected = answer(opened(content))
    remembered.forget_plans()
    there = restoring.library()

    def found() -> Any:
        if installed == "none":
            raise restoring.MissingKernelError("there is none")
        return there._replace(identity="0" * 32)

    monkeypatch.setattr(restoring, "library", found)
    interpreter = opened(content)
    assert not is_restored(interpreter)
    np.testing.assert_array_equal(answer(interpreter), expected)


@pytest.mark.parametrize("allocates_first", [False, True])
def test_kernels_that_are_needed_later_are_initialized(allocates_first: bool) -> None:
    class Eager(OpResolver):
        """Begins each list of providers with one that has an `init` and declines all nodes."""

        def __init__(self, other: OpResolver) -> None:
            self.other = other

        def find_op(self, op: Any, version: int) -> Registration | None:
            return next(self.candidates(op, version), None)

        def candidates(self, op: Any, version: int) -> Iterator[Registration]:
            yield Registration(init=lambda *_: begun.append(op), prepare=refuse, invoke=lambda *_: None).stamped(
                op, version, Provenance()
            )
            yield from self.other.candidates(op, version)

        def versions(self, op: Any) -> list[int]:
            return self.other.versions(op)

    def refuse(context: Any, node: Any) -> None:
        assert node.op in begun
        decline("it serves none")

    begun: list[Any] = []
    prepared, restored = both(model())
    if not allocates_first:
        restored = Interpreter(model_content=model())
    session = restored._runtime.session
    assert session._found_resolver is None
    session._found_resolver = Eager(session._resolver())
    restored.resize_tensor_input(X, (2, SIDE, SIDE, DEPTH))
    restored.allocate_tensors()
    assert len(begun) == 4
    restored.resize_tensor_input(X, (1, SIDE, SIDE, DEPTH))
    restored.allocate_tensors()
    np.testing.assert_array_equal(answer(restored), answer(prepared))


def test_it_explains_and_describes_itself_like_one_that_was_prepared_and_keeps_its_values() -> None:
    prepared, restored = both(model())
    expected = answer(prepared)
    np.testing.assert_array_equal(answer(restored), expected)
    view = restored.tensor(X)()
    assert str(restored.explain()) == str(prepared.explain())
    assert str(restored.get_tensor_details()) == str(prepared.get_tensor_details())
    assert str(restored._get_ops_details()) == str(prepared._get_ops_details())
    np.testing.assert_array_equal(restored.get_tensor(OUT), expected)
    np.testing.assert_array_equal(restored.get_tensor(X), value())
    view[...] = value(1)  # of the memory that it still has
    del view
    restored.invoke()
    np.testing.assert_array_equal(restored.get_tensor(OUT), answer(prepared, 1))


def test_every_tensor_is_read_as_of_one_that_was_prepared() -> None:
    prepared, restored = both(model())
    for interpreter in (prepared, restored):
        answer(interpreter)

    def read(interpreter: Interpreter, index: int) -> Any:
        try:
            return interpreter.get_tensor(index)
        except TensorError as error:
            return str(error)

    for index in range(len(prepared.get_tensor_details())):
        np.testing.assert_array_equal(read(restored, index), read(prepared, index))


def clamped() -> bytes:
    """A sum whose clamp is a node of its own, which the sum's kernel computes with it."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", "float32", (1, SIDE, SIDE, DEPTH))
    bias = graph.add_tensor("bias", "float32", (DEPTH,), data=np.arange(DEPTH) / 8)
    y, z = (graph.add_tensor(name, "float32", (1, SIDE, SIDE, DEPTH)) for name in "yz")
    graph.add_operator("ADD", [x, bias], [y], AddOptions())
    graph.add_operator("RELU", [y], [z])
    graph.set_inputs(x)
    graph.set_outputs(z)
    return builder.to_bytes()


def test_nodes_that_are_computed_together_are_told_as_such() -> None:
    def run(interpreter: Interpreter) -> Any:
        interpreter.set_tensor(0, value())
        interpreter.invoke()
        return interpreter.get_tensor(3)

    prepared, restored = both(clamped(), run)
    np.testing.assert_array_equal(run(restored), run(prepared))
    for interpreter in (prepared, restored):
        assert interpreter._subgraphs[0].absorption.nodes
        with pytest.raises(TensorError, match="experimental_preserve_all_tensors"):
            interpreter.get_tensor(2)
    assert is_restored(restored)
    assert str(restored.explain()) == str(prepared.explain())
    assert not is_restored(restored)
    with pytest.raises(TensorError, match="experimental_preserve_all_tensors"):
        restored.get_tensor(2)
    np.testing.assert_array_equal(run(restored), run(prepared))


def test_it_does_not_run_before_it_allocates() -> None:
    kept(model())
    interpreter = Interpreter(model_content=model())
    with pytest.raises(StateError):
        interpreter.invoke()
    with pytest.raises(TensorError):
        interpreter.get_tensor(OUT)
    interpreter.allocate_tensors()
    assert is_restored(interpreter)


def test_a_node_that_fails_tells_it_as_always_and_the_next_run_succeeds() -> None:
    def run(interpreter: Interpreter, *rows: int) -> Any:
        interpreter.set_tensor(0, np.array(rows or (0, 1, 2, 3), np.int32))
        interpreter.invoke()
        return interpreter.get_tensor(2)

    prepared, restored = both(picking(), run)
    np.testing.assert_array_equal(run(restored, 4, 0, 4, 2), run(prepared, 4, 0, 4, 2))
    told = []
    for interpreter in (prepared, restored):
        with pytest.raises(InvokeError) as error:
            run(interpreter, 0, 5, 0, 0)
        told.append(str(error.value))
    assert told[0] == told[1]
    np.testing.assert_array_equal(run(restored, 3, 3, 0, 1), run(prepared, 3, 3, 0, 1))


def test_a_delegate_may_come_later() -> None:
    pytest.importorskip("ai_edge_litert")
    prepared, restored = both(model())
    expected = answer(prepared)
    np.testing.assert_array_equal(answer(restored), expected)
    restored.modify_graph_with_delegate(load_delegate("litert"))
    assert any(report.partitions for report in restored.delegation_reports())
    np.testing.assert_allclose(answer(restored), expected, rtol=1e-4, atol=1e-5)
    restored.remove_all_delegates()
    np.testing.assert_array_equal(answer(restored), expected)


def test_interpreters_of_one_plan_have_memory_of_their_own() -> None:
    prepared, first = both(model())
    second = opened(model())
    assert is_restored(second)
    one, other = answer(first, 0), answer(second, 1)
    np.testing.assert_array_equal(first.get_tensor(OUT), one)
    np.testing.assert_array_equal(one, answer(prepared, 0))
    np.testing.assert_array_equal(other, answer(prepared, 1))


def test_signatures_run_it() -> None:
    prepared, restored = both(model())
    found = restored.get_signature_runner()(x=value(2))["out"]
    assert is_restored(restored)
    np.testing.assert_array_equal(found, answer(prepared, 2))


def test_memory_is_released_and_allocated_again() -> None:
    prepared, restored = both(model())
    restored.release_non_persistent_memory()
    with pytest.raises(StateError):
        restored.invoke()
    np.testing.assert_array_equal(restored.get_tensor(2), prepared.get_tensor(2))  # a constant that was computed
    with pytest.raises(StateError):
        restored.invoke()
    restored.allocate_tensors()
    np.testing.assert_array_equal(answer(restored), answer(prepared))


def test_it_goes_with_all_it_holds_when_it_is_dropped() -> None:
    kept(model())
    restored = opened(model())
    answer(restored)
    held = [weakref.ref(thing) for thing in (restored, restored._subgraphs[0], restored._subgraphs[0].segments[0].arena)]
    gc.disable()
    try:
        del restored
        assert [thing() is None for thing in held] == [True, False, False]  # nodes and arena are left to the next one
        remembered.forget_plans()
        assert [thing() is None for thing in held] == [True, True, True]
    finally:
        gc.enable()


def test_the_next_one_has_the_arena_and_the_answers_of_the_dropped_one() -> None:
    content = model()
    prepared, restored = both(content)
    expected = answer(prepared, 3)
    for number in range(3):
        arena = restored._subgraphs[0].segments[0].arena
        np.testing.assert_array_equal(answer(restored, 3), expected)
        if number == 1:  # a constant that was computed: the nodes are prepared
            np.testing.assert_array_equal(restored.get_tensor(2), prepared.get_tensor(2))
        assert is_restored(restored) is (number == 0)
        del restored
        restored = opened(content)
        assert is_restored(restored) is (number == 0)
        assert restored._subgraphs[0].segments[0].arena is arena
        assert not restored.get_tensor(X).any()
        assert not restored.get_tensor(OUT).any()


def test_an_interpreter_to_which_another_one_leaves_no_plan_reads_it_from_disk() -> None:
    content = model()
    kept(content)
    opened(content)
    [one, other] = [Interpreter(model_content=content) for _ in range(2)]
    for interpreter in (one, other):
        interpreter.allocate_tensors()
        assert is_restored(interpreter)
    np.testing.assert_array_equal(answer(one), answer(other))


def test_a_closed_one_runs_no_more() -> None:
    _, restored = both(model())
    restored.close()
    with pytest.raises(OpletError):
        restored.invoke()


def test_another_thread_is_refused_while_one_has_it() -> None:
    _, restored = both(model())
    restored.set_tensor(X, value())
    raised: list[Exception] = []

    def run() -> None:
        try:
            restored.invoke()
        except OpletError as error:
            raised.append(error)

    restored._runtime.session.lock()
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        restored._runtime.session.unlock()
    assert [type(error) for error in raised] == [StateError]
    restored.invoke()
    assert is_restored(restored)


def test_another_version_takes_no_plan_though_all_files_are_dated_and_as_long_as_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = model()
    kept(content)
    monkeypatch.setattr("oplet.__version__", "0.0.1")
    assert not is_restored(opened(content))
    kept(content)
    assert is_restored(opened(content))
    monkeypatch.undo()
    monkeypatch.setenv("OPLET_CACHE_DIR", str(folder.parent))
    monkeypatch.setenv(STORE_VARIABLE, "")
    remembered.forget_plans()
    assert is_restored(opened(content))
    assert len(plans(folder)) == 2


def test_other_folders_before_the_installed_packages_take_no_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content = model()
    kept(content)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert not is_restored(opened(content))


def test_files_are_bounded_in_number_and_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_files, "_ALL_FILES", 3)
    contents = [model(seed) for seed in range(5)]
    for number, content in enumerate(contents):
        kept(content)
        for path in plans(folder):  # so that their order is told by more than a clock's tick
            os.utime(path, (number, number) if path.stat().st_mtime > 1e9 else None)
            break
    assert len(plans(folder)) == 3
    size = plans(folder)[0].stat().st_size
    monkeypatch.setattr(plan_files, "_ALL_BYTES", 2 * size)
    kept(model(9))
    assert len(plans(folder)) == 2
    monkeypatch.setattr(plan_files, "_LARGEST_FILE", size - 1)
    kept(model(10))
    assert not is_restored(opened(model(10)))


def test_notes_of_opened_models_take_bounded_space(folder: Path) -> None:
    names = [PlanName("", np.frombuffer(os.urandom(100), np.uint8)) for _ in range(200)]
    assert not any(note_opened(name) for name in names)
    assert sum(note_opened(name) for name in names[-50:]) >= 45  # few share a place
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 4096 * 12


def beside(value: Any) -> bytes:
    """x + 1, and what a node makes of a constant, which is folded."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, "float32", (8,)) for name in "xy")
    one = graph.add_tensor("one", "float32", (8,), data=np.ones(8))
    numbers = graph.add_tensor("numbers", "int64", (4,), data=value)
    folded = graph.add_tensor("folded", "int64", (4,))
    graph.add_operator("ADD", [x, one], [y], AddOptions())
    graph.add_operator("ADD", [numbers, numbers], [folded], AddOptions())
    graph.set_inputs(x)
    graph.set_outputs(y, folded)
    return builder.to_bytes()


def test_values_that_look_like_addresses_stay_as_they_are(folder: Path) -> None:
    content = beside(np.arange(4))
    opened(content).invoke()
    storing = opened(content)
    subgraph = storing._subgraphs[0]
    arena = subgraph.segments[0].arena
    assert arena is not None
    there = subgraph.tensors[subgraph.outputs[1]]
    looks = arena.ctypes.data + np.arange(4, dtype=np.int64)
    there.set_memory(looks.copy())
    storing.invoke()
    assert len(plans(folder)) == 1
    restored = opened(content)
    assert is_restored(restored)
    restored.invoke()
    np.testing.assert_array_equal(restored.get_tensor(subgraph.outputs[1]), looks)


def test_cancel_ends_storing_and_the_answer_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = model()
    expected = answer(opened(content))
    storing = opened(content)
    find = stored_plan.all_sources

    def cancelled(manager: Any) -> Any:
        thread = threading.Thread(target=storing.cancel)
        thread.start()
        thread.join()
        return find(manager)

    monkeypatch.setattr(stored_plan, "all_sources", cancelled)
    np.testing.assert_array_equal(answer(storing), expected)
    assert not plans(folder)
    np.testing.assert_array_equal(answer(storing), expected)


def test_what_takes_long_to_store_is_not_stored_within_a_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored_plan.MOST_NODES <= 10_000
    monkeypatch.setattr(stored_plan, "MOST_NODES", 3)
    kept(model())
    assert not plans(folder)
    monkeypatch.setattr(stored_plan, "MOST_NODES", 4)
    kept(model())
    assert plans(folder)
