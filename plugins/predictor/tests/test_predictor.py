"""`oplet.Predictor` as a function of rows: its results are those of a serial loop, whoever calls it, and its errors name the row."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budgets import examples
from tests.places import EXAMPLES

from oplet import Delegate, Interpreter, Limits, PluginManager, Predictor, TensorType, load_delegate
from oplet.errors import DelegateError, InvokeError, LimitError, ModelError, PluginError, SignatureError, StateError, TensorError
from oplet.schema.options import AddOptions, GatherOptions, SVDFOptions
from oplet_predictor.arguments import Arguments
from oplet_testing import Graph, Op, Spec, graph_model, one_op_model

pytest.importorskip("oplet_builtin_ops")

INT8 = EXAMPLES / "digits" / "digits_int8.tflite"
FLOAT = EXAMPLES / "digits" / "digits_float32.tflite"
F32 = np.float32


def images(count: int, dtype: Any = np.int8, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    if dtype is np.int8:
        return random.integers(-128, 127, (count, 8, 8, 1), np.int8, endpoint=True)
    return random.random((count, 8, 8, 1)).astype(dtype)


def serial(model: Any, rows: Any) -> Any:
    """What a plain interpreter gives for these rows, one after the other."""
    interpreter = Interpreter(str(model)) if isinstance(model, Path) else Interpreter(model_content=model)
    interpreter.allocate_tensors()
    given, made = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    results = []
    for row in rows:
        interpreter.set_tensor(given, row[np.newaxis])
        interpreter.invoke()
        results.append(interpreter.get_tensor(made)[0])
    return np.stack(results)


def gather(rows: int = 5) -> bytes:
    """A model that takes one of a few rows: a row's number that is too large is an error of that row."""
    table = np.arange(rows * 2, dtype=F32).reshape(rows, 2)
    return one_op_model("GATHER", [table, Spec(np.int32, [1])], [Spec(F32, [1, 2])], GatherOptions(axis=0))


def lengths() -> bytes:
    """A model whose rows may be of any length: x + 1."""
    free = Spec(F32, [1, 1], signature=[-1, -1])
    return one_op_model("ADD", [free, np.array([1], F32)], [free], AddOptions())


def where() -> bytes:
    """A model whose output's shape depends on the row's values: the places of what is true."""
    return one_op_model("WHERE", [Spec(np.bool_, [4])], [Spec(np.int64, [1, 1])])


# Rows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "dtype"), [(INT8, np.int8), (FLOAT, F32)])
def test_rows_come_out_as_from_a_serial_loop(model: Path, dtype: Any) -> None:
    rows = images(40, dtype)
    predict = Predictor(model)
    expected = serial(model, rows)
    for given_rows in ({"image": rows}, rows, list(rows), {"image": rows[:, np.newaxis]}, {"image": rows[::-1][::-1]}):
        (got,) = predict(given_rows).values()
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.integers(0, 40), max_size=4), st.sampled_from([None, True, 3, 8, False]))
def test_any_split_of_the_rows_gives_the_same(cuts: list[int], batch: Any) -> None:
    rows = images(40)
    whole = FREE(rows)["probabilities"]
    np.testing.assert_array_equal(whole, EXPECTED)
    split = PREDICTORS[batch]
    parts = [split(part)["probabilities"] for part in np.split(rows, sorted(cuts))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def free_batch() -> bytes:
    """The quantized model with a free batch size."""
    from oplet.model.model import Model
    from oplet_tools.rewriting.batching import set_batch

    model = Model.open(INT8)
    set_batch(model, -1, PluginManager())
    return model.to_bytes()


FREE_MODEL = free_batch()
FREE = Predictor(FREE_MODEL)
EXPECTED = serial(INT8, images(40))
PREDICTORS = {batch: Predictor(FREE_MODEL, batch=batch) for batch in (None, True, 3, 8, False)}


def test_integers_run_in_batches_without_being_asked_and_floats_only_when_asked() -> None:
    assert "runs batches of " in FREE.explain()
    assert "bits are those of single rows" in FREE.explain()
    told = Predictor(FLOAT).explain()
    assert "runs row by row: the model does not take 3 rows at once" in told
    assert "oplet rewrite --batch" in told
    x = Spec(F32, [1, 8], signature=[-1, 8])
    model = one_op_model("FULLY_CONNECTED", [x, np.ones((2, 8), F32), None], [Spec(F32, [1, 2], signature=[-1, 2])])
    assert "batch=True allows that" in Predictor(model).explain()
    assert "runs batches of 64 rows" in Predictor(model, batch=True).explain()
    assert "runs batches of 5 rows" in Predictor(model, batch=5).explain()
    assert (Predictor(model, batch=5).batch_size, Predictor(model, batch=False).batch_size) == (5, 1)
    assert "batch=1 asks for it" in Predictor(model, batch=False).explain()
    rows = np.random.default_rng(0).random((13, 8)).astype(F32)
    (got,), (alone,) = Predictor(model, batch=5)(rows).values(), Predictor(model)(rows).values()
    np.testing.assert_allclose(got, alone, rtol=1e-5)


def test_a_batch_is_as_large_as_the_limits_allow() -> None:
    x = Spec(F32, [1, 1000], signature=[-1, 1000])
    model = one_op_model("FLOOR", [x], [x])
    told = Predictor(model, batch=64, limits=Limits(max_arena_bytes=100_000)).explain()
    assert "batches of 8 rows" in told
    told = Predictor(model, batch=64, limits=Limits(max_arena_bytes=9_000)).explain()
    assert "row by row" in told


def test_no_rows_give_empty_arrays_of_the_outputs_shape_and_type() -> None:
    for predict, rows in ((Predictor(INT8), images(0)), (FREE, images(0)), (Predictor(INT8), [])):
        (got,) = predict(rows).values()
        assert got.shape == (0, 10)
        assert got.dtype == np.int8


def test_a_row_of_an_input_without_a_batch_dimension_is_the_whole_tensor() -> None:
    model = one_op_model("ADD", [Spec(F32, [2, 3]), Spec(F32, [])], [Spec(F32, [2, 3])], AddOptions())
    predict = Predictor(model)
    names = list(predict.inputs)
    assert [predict.inputs[name].shape for name in names] == [(2, 3), ()]
    x, y = np.arange(24, dtype=F32).reshape(4, 2, 3), np.arange(4, dtype=F32)
    (got,) = predict({names[0]: x, names[1]: y}).values()
    np.testing.assert_array_equal(got, x + y[:, None, None])
    assert "has no dimension for rows" in predict.explain()


def test_rows_may_have_several_shapes_where_the_model_leaves_them_free() -> None:
    predict = Predictor(lengths())
    (same,) = predict(np.ones((3, 4), F32)).values()
    np.testing.assert_array_equal(same, np.full((3, 4), 2, F32))
    rows = [np.arange(n, dtype=F32) for n in (3, 1, 4)]
    (got,) = predict(rows).values()
    assert got.shape == (3,)
    assert got.dtype == object
    for row, made in zip(rows, got):
        np.testing.assert_array_equal(made, row + 1)
    (again,) = predict(got).values()  # what a Predictor returns, it takes
    np.testing.assert_array_equal(again[2], rows[2] + 2)


def test_outputs_whose_shapes_depend_on_values_come_as_an_array_for_each_row() -> None:
    predict = Predictor(where())
    rows = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]], bool)
    (got,) = predict(rows).values()
    assert [row.tolist() for row in got] == [[[0], [3]], [], [[0], [1], [2]]]
    (same,) = predict(rows[[0, 0]]).values()
    assert same.shape == (2, 2, 1)


def test_text_goes_through() -> None:
    words = Spec("S", [1, 2], signature=[-1, 2])
    predict = Predictor(one_op_model("RESHAPE", [words, np.array([-1, 2], np.int32)], [words]))
    rows = np.array([[b"a", b"bc"], [b"", b"d\0"], [b"e", b"f"]], object)
    (got,) = predict(rows).values()
    assert got.tolist() == rows.tolist()
    assert "batches of" in predict.explain()
    assert [next(iter(row.values())).tolist() for row in predict.map([["x", "y"], [b"z", b""]])] == [[b"x", b"y"], [b"z", b""]]


def test_a_row_that_is_one_text_is_kept_as_one() -> None:
    word = Spec("S", [1])
    predict = Predictor(one_op_model("RESHAPE", [word, np.array([1], np.int32)], [word]), batch=False)
    (got,) = predict(np.array([b"a", b"bc", b""], object)).values()
    assert got.tolist() == [b"a", b"bc", b""]
    assert [next(iter(row.values())).tolist() for row in predict.map([["x"], [b"y"]])] == [b"x", b"y"]


def test_each_row_begins_with_the_model_s_first_state() -> None:
    """SVDF keeps what it saw: with it, a second run of the same row gives something else."""
    x, state = Spec(F32, [1, 2]), Spec(F32, [1, 4], variable=True)
    weights, times = np.ones((2, 2), F32), np.ones((2, 2), F32)
    model = one_op_model("SVDF", [x, weights, times, None, state], [Spec(F32, [1, 2])], SVDFOptions(rank=1))
    rows = np.array([[1, 2], [1, 2], [3, 4]], F32)
    predict = Predictor(model, batch=True)
    (got,) = predict(rows).values()
    np.testing.assert_array_equal(got, [[3, 3], [3, 3], [7, 7]])
    assert serial(model, rows).tolist() == [[3, 3], [6, 6], [10, 10]]
    assert "keeps state" in predict.explain()


# Errors ------------------------------------------------------------------------------------------------------


def test_an_error_names_the_row() -> None:
    predict = Predictor(gather(), batch=False)
    rows = np.array([0, 1, 9, 2], np.int32)
    with pytest.raises(InvokeError, match=r"^row 2: .*GATHER"):
        predict(rows)
    (got,) = predict(rows[:2]).values()  # it can go on
    np.testing.assert_array_equal(got, [[0, 1], [2, 3]])


def test_an_error_within_a_batch_names_the_row_too() -> None:
    x = Spec(np.int32, [1], signature=[-1])
    model = one_op_model(
        "GATHER", [np.arange(40, dtype=np.int32).reshape(20, 2), x], [Spec(np.int32, [1, 2], signature=[-1, 2])], GatherOptions()
    )
    predict = Predictor(model, batch=8)
    assert "batches of 8" in predict.explain()
    rows = np.arange(20, dtype=np.int32)
    rows[13] = 99
    with pytest.raises(InvokeError, match=r"^row 13: "):
        predict(rows)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            {"image": images(2).astype(F32)},
            r"input 'image': the value is float32, but it takes rows of int8 \[8, 8, 1\]; convert",
        ),
        ({"image": images(2)[:, :7]}, r"got rows of the shape \[2, 7, 8, 1\], but it takes \[N, 8, 8, 1\]"),
        ({"picture": images(2)}, r"has no input 'picture'; its inputs are 'image'"),
        ({}, "needs rows for its input 'image' too"),
        ({"image": [images(1)[0], images(1)[0, 1:]]}, r"^row 1: input 'image': got a row of the shape \[7, 8, 1\]"),
        ({"image": None}, "the value is object"),
        (np.int8(3), r"got rows of the shape \[\]"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(rows: Any, said: str) -> None:
    with pytest.raises(TensorError, match=said):
        Predictor(INT8)(rows)


def test_inputs_have_the_same_number_of_rows() -> None:
    model = one_op_model("ADD", [Spec(F32, [1, 2]), Spec(F32, [1, 2])], [Spec(F32, [1, 2])], AddOptions())
    predict = Predictor(model)
    a, b = predict.inputs
    with pytest.raises(TensorError, match=f"different numbers of rows: '{a}' 2, '{b}' 3"):
        predict({a: np.zeros((2, 2), F32), b: np.zeros((3, 2), F32)})
    with pytest.raises(TensorError, match="has 2 inputs; give a mapping"):
        predict(np.zeros((2, 2), F32))


def test_names_are_taken_without_what_converters_add() -> None:
    graph = Graph(
        {"serving_default_x:0": Spec(F32, [1, 2]), "y": Spec(F32, [1, 2])},
        "serving_default_x:0",
        "y",
        [Op("FLOOR", "serving_default_x:0", "y")],
    )
    predict = Predictor(graph_model(graph))
    x = np.array([[1.5, 2.5]], F32)
    for name in ("x", "serving_default_x", "serving_default_x:0", "x:0"):
        if name in ("serving_default_x", "x:0"):
            with pytest.raises(TensorError, match="no input"):
                predict({name: x})
        else:
            np.testing.assert_array_equal(predict({name: x})["y"], [[1, 2]])


def test_a_model_that_is_no_path_or_bytes_is_refused_in_one_sentence() -> None:
    with pytest.raises(ModelError, match="not an open interpreter"):
        Predictor(Interpreter(str(INT8)))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="which 3 is not"):
        Predictor(3)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"There is no file '.*nowhere.tflite' here"):
        Predictor("nowhere.tflite")(images(1))
    with pytest.raises(SignatureError, match="nothing"):
        Predictor(INT8, signature="nothing")(images(1))
    for arguments in ({"num_threads": 0}, {"num_threads": True}, {"batch": 0}, {"batch": "8"}):
        with pytest.raises(TensorError, match=next(iter(arguments))):
            Predictor(INT8, **arguments)  # type: ignore[arg-type]


def test_limits_hold_for_each_row() -> None:
    with pytest.raises(LimitError, match="max_arena_bytes"):
        Predictor(INT8, limits=Limits(max_arena_bytes=1000))(images(2))


def test_a_model_whose_rows_would_share_state_is_refused() -> None:
    from oplet.schema.options import VarHandleOptions

    graph = Graph(
        {"x": Spec(F32, [1, 2]), "v": Spec(TensorType.RESOURCE, [1]), "y": Spec(F32, [1, 2])},
        "x",
        "y",
        [
            Op("VAR_HANDLE", "", "v", VarHandleOptions(container="", shared_name="v")),
            Op("ASSIGN_VARIABLE", "v x"),
            Op("READ_VARIABLE", "v", "y"),
        ],
    )
    with pytest.raises(ModelError, match=r"assigns a resource variable while it runs \(node 1 of subgraph 0\)"):
        Predictor(graph_model(graph))(np.zeros((2, 2), F32))


# Delegates ---------------------------------------------------------------------------------------------------


def example() -> Delegate:
    return load_delegate("example")


@pytest.mark.parametrize("delegates", ["example", ["example"], [("example", {})], [example]])
def test_delegates_are_made_for_each_interpreter(delegates: Any) -> None:
    pytest.importorskip("oplet_example_delegate")
    predict = Predictor(INT8, delegates=delegates)
    again = pickle.loads(pickle.dumps(predict))
    np.testing.assert_array_equal(next(iter(again(images(40)).values())), EXPECTED)
    assert "a delegate's results may depend on the batch" in predict.explain()
    with predict._pool.lend() as lent:
        assert lent.single.interpreter.delegation_reports()


def test_delegates_that_belong_to_one_interpreter_are_refused() -> None:
    with pytest.raises(DelegateError, match="belongs to one interpreter"):
        Predictor(INT8, delegates=[Delegate()])  # type: ignore[list-item]
    with pytest.raises(DelegateError, match="belongs to one interpreter"):
        Predictor(INT8, delegates=Delegate())  # type: ignore[arg-type]
    with pytest.raises(DelegateError, match="3 is no delegate"):
        Predictor(INT8, delegates=[3])  # type: ignore[list-item]
    with pytest.raises(DelegateError, match="stands alone"):
        Predictor(INT8, delegates=["auto", "example"])
    with pytest.raises(DelegateError, match="returns a str, which is no Delegate"):
        Predictor(INT8, delegates=[str])(images(1))  # type: ignore[list-item]


# Processes and threads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_other_processes_open_their_own(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("there is no fork here")
    predict = Predictor(INT8)
    np.testing.assert_array_equal(predict(images(40))["probabilities"], EXPECTED)  # the parent has one open
    with multiprocessing.get_context(method).Pool(2) as pool:
        parts = pool.map(predict, np.split(images(40), 4))
    np.testing.assert_array_equal(np.concatenate([part["probabilities"] for part in parts]), EXPECTED)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_its_own_while_the_parent_s_threads_run() -> None:
    predict = Predictor(INT8)
    predict(images(2))
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            predict(images(2))

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if not child:
                try:
                    os._exit(0 if np.array_equal(predict(images(40))["probabilities"], EXPECTED) else 1)
                finally:
                    os._exit(2)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_predictor_is_pickled_as_its_arguments_alone() -> None:
    predict = Predictor(
        os.path.relpath(INT8), num_threads=2, batch=4, prefer=["oplet-builtin-ops"], limits=Limits(max_seconds=60)
    )
    before = pickle.dumps(predict)
    predict(images(40))
    assert pickle.dumps(predict) == before
    assert len(before) < 1000
    assert predict._arguments == pickle.loads(before)._arguments
    assert os.path.isabs(predict._arguments.model)  # the other process may work in another folder
    content = pickle.loads(pickle.dumps(Predictor(INT8.read_bytes())))
    np.testing.assert_array_equal(content(images(40))["probabilities"], EXPECTED)
    with pytest.raises(PluginError, match="PluginManager, which stays in its process"):
        pickle.dumps(Predictor(INT8, plugins=PluginManager()))
    np.testing.assert_array_equal(Predictor(INT8, plugins=PluginManager())(images(40))["probabilities"], EXPECTED)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Weak references to the interpreters that Predictors open."""
    found: list[Any] = []
    real = Arguments.open

    def open(self: Arguments, with_delegates: bool = True) -> Interpreter:
        interpreter = real(self, with_delegates)
        found.append(weakref.ref(interpreter))
        return interpreter

    monkeypatch.setattr(Arguments, "open", open)
    return found


def test_eight_threads_call_at_the_same_time() -> None:
    predict = Predictor(FREE_MODEL)
    random = np.random.default_rng(1)
    cuts = [sorted(random.integers(0, 40, 2)) for _ in range(120)]
    rows = images(40)
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda cut: predict(rows[cut[0] : cut[1]])["probabilities"], cuts))
    for (start, stop), part in zip(cuts, parts):
        np.testing.assert_array_equal(part, EXPECTED[start:stop])


def test_threads_that_end_leave_their_interpreter_for_others(opened: list[Any]) -> None:
    predict = Predictor(INT8)
    assert not opened  # lazily
    for _ in range(20):
        thread = threading.Thread(target=predict, args=(images(1),))
        thread.start()
        thread.join()
    assert len(opened) == 1
    both = threading.Barrier(2)

    def meet() -> None:
        with predict._pool.lend():
            both.wait()

    for _ in range(3):
        threads = [threading.Thread(target=meet) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(opened) == 2


def test_close_and_garbage_collection_end_the_interpreters(opened: list[Any]) -> None:
    with Predictor(FREE_MODEL) as predict:
        predict(images(40))
    assert len(opened) > 1
    with pytest.raises(StateError, match="was closed"):
        predict(images(1))
    predict.close()
    gc.collect()
    assert not any(reference() for reference in opened)
    other = Predictor(INT8)
    other(images(1))
    assert opened[-1]() is not None
    del other
    gc.collect()
    assert opened[-1]() is None


def test_a_call_that_is_under_way_outlives_close(opened: list[Any]) -> None:
    predict = Predictor(INT8)
    with predict._pool.lend() as lent:
        predict.close()
        lent.single.run([images(1)])
    del lent
    gc.collect()
    assert opened[-1]() is None


def test_num_threads_do_not_multiply_blas_threads() -> None:
    from oplet.runtime.blas import SINGLE_THREADED, find_openblas

    if find_openblas() is None:
        pytest.skip("numpy multiplies with another BLAS")
    seen = []
    predict = Predictor(INT8)
    real = predict.__class__._run

    def watched(self: Any, *arguments: Any) -> Any:
        seen.append(SINGLE_THREADED._count())
        return real(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Predictor, "_run", watched)
        list(predict.map(list(images(10)), workers=2))
    assert set(seen) == {1}
