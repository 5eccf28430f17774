"""`Predictor.map`: order, bounded reading, errors by item, progress, and an end at once, with threads and with processes."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budgets import examples
from tests.children import LONG, run_child
from tests.places import EXAMPLES

from oplet import Interpreter, Limits, PluginManager, Predictor
from oplet.errors import InvokeError, ModelError, OpletError, PluginError, TensorError
from oplet.schema.options import BatchMatMulOptions, GatherOptions
from oplet_predictor import mapping
from oplet_testing import Graph, Op, Spec, graph_model, one_op_model

pytest.importorskip("oplet_builtin_ops")

INT8 = EXAMPLES / "digits" / "digits_int8.tflite"
F32 = np.float32
#: A model that takes one of twenty rows: a number beyond is an error of its item.
PICK = one_op_model(
    "GATHER",
    [np.arange(40, dtype=np.int32).reshape(20, 2), Spec(np.int32, [1], signature=[-1])],
    [Spec(np.int32, [1, 2], signature=[-1, 2])],
    GatherOptions(),
)


def images(count: int) -> Any:
    return np.random.default_rng(0).integers(-128, 127, (count, 8, 8, 1), np.int8, endpoint=True)


def expected(rows: Any) -> Any:
    interpreter = Interpreter(str(INT8))
    interpreter.allocate_tensors()
    given_index, made = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    results = []
    for row in rows:
        interpreter.set_tensor(given_index, row[None])
        interpreter.invoke()
        results.append(interpreter.get_tensor(made)[0])
    return results


def picked(results: Any) -> list[int]:
    """The numbers that PICK's results come from."""
    return [int(next(iter(result.values()))[0]) // 2 for result in results]


def slow() -> bytes:
    """A model of twenty products that take some hundredths of a second each."""
    size = 600
    x = Spec(F32, [1, size, size])
    tensors = {f"t{i}": x for i in range(21)}
    nodes = [Op("BATCH_MATMUL", f"t{i} t{i}", f"t{i + 1}", BatchMatMulOptions()) for i in range(20)]
    return graph_model(Graph(tensors, "t0", "t20", nodes))


WORKERS = pytest.mark.parametrize(
    ("workers", "processes"),
    [(1, False), (2, False), (5, False), (2, True)],
    ids=["one", "two", "five", "processes"],
)


@WORKERS
def test_results_come_in_order_and_are_those_of_a_serial_loop(workers: int, processes: bool) -> None:
    rows = images(60)
    items: list[Any] = [{"image": row} for row in rows[:20]] + list(rows[20:40]) + [row[None] for row in rows[40:]]
    results = list(Predictor(INT8).map(items, workers, processes=processes))
    assert len(results) == 60
    for result, row in zip(results, expected(rows)):
        assert result["probabilities"].dtype == np.int8
        np.testing.assert_array_equal(result["probabilities"], row)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(0, 19), max_size=300), st.integers(1, 4), st.booleans(), st.sampled_from([None, False, 7]))
def test_any_number_of_workers_and_any_batch_give_the_same(numbers: list[int], workers: int, ordered: bool, batch: Any) -> None:
    results = list(PICKERS[batch].map(map(np.int32, numbers), workers, ordered=ordered))
    if not ordered:
        assert sorted(number for number, _ in results) == list(range(len(numbers)))
        results = [result for _, result in sorted(results, key=lambda pair: pair[0])]
    assert picked(results) == numbers


PICKERS = {batch: Predictor(PICK, batch=batch) for batch in (None, False, 7)}


@WORKERS
def test_an_endless_generator_is_read_a_few_items_ahead(workers: int, processes: bool) -> None:
    read = 0

    def endless() -> Iterator[Any]:
        nonlocal read
        for read in itertools.count():
            yield np.int32(read % 20)

    results = Predictor(PICK).map(endless(), workers, processes=processes)
    for number, result in enumerate(itertools.islice(results, 500)):
        assert picked([result]) == [number % 20]
    results.close()
    assert read < 500 + (3 * workers + 1) * mapping._LARGEST
    assert next(iter(results), "ended") == "ended"


@WORKERS
def test_an_iterable_may_fill_one_array_anew_for_each_item(workers: int, processes: bool) -> None:
    number = np.zeros(1, np.int32)

    def refilled() -> Iterator[Any]:
        for each in range(100):
            number[:] = each % 20
            yield {"a": number} if each % 2 else number

    name = next(iter(Predictor(PICK).inputs))
    items = ({name: item["a"]} if isinstance(item, dict) else item for item in refilled())
    assert picked(Predictor(PICK).map(items, workers, processes=processes)) == [each % 20 for each in range(100)]


@WORKERS
def test_what_an_item_raises_ends_no_worker_in_silence(workers: int, processes: bool) -> None:
    class Odd(dict[str, Any]):
        def items(self) -> Any:
            raise SystemExit("odd")

        def __deepcopy__(self, memo: Any) -> Any:
            return self

        def __reduce__(self) -> Any:
            raise SystemExit("odd")

    with pytest.raises(SystemExit, match="odd"):
        list(Predictor(PICK).map([np.int32(1), Odd(), np.int32(2)], workers, processes=processes))


@WORKERS
def test_an_error_names_its_item_and_comes_in_its_place(workers: int, processes: bool) -> None:
    numbers = [*range(7), 99, *range(7)]
    results = Predictor(PICK).map(map(np.int32, numbers), workers, processes=processes)
    assert picked(itertools.islice(results, 7)) == list(range(7))
    with pytest.raises(InvokeError, match="^item 7: .*GATHER"):
        next(results)
    assert not list(results)


@WORKERS
def test_errors_may_be_returned_so_that_the_others_go_on(workers: int, processes: bool) -> None:
    items: list[Any] = [np.int32(3), np.int32(99), np.float32(3), None, np.int32(4), {"wrong": 1}]
    results = list(Predictor(PICK).map(items, workers, processes=processes, errors="return"))
    assert picked([results[0], results[4]]) == [3, 4]
    for number, kind in ((1, InvokeError), (2, TensorError), (3, TensorError), (5, TensorError)):
        assert type(results[number]) is kind
        assert str(results[number]).startswith(f"item {number}: ")


def test_results_may_come_as_they_are_ready_with_their_numbers() -> None:
    pairs = list(Predictor(PICK).map(map(np.int32, range(20)), 3, ordered=False, errors="return"))
    assert sorted(number for number, _ in pairs) == list(range(20))
    for number, result in pairs:
        assert picked([result]) == [number]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_the_iterable_comes_after_the_results_before_it(workers: int) -> None:
    def broken() -> Iterator[Any]:
        yield from map(np.int32, range(5))
        raise OSError("the disk is gone")

    results = Predictor(PICK).map(broken(), workers)
    assert picked(itertools.islice(results, 5)) == list(range(5))
    with pytest.raises(OSError, match="the disk is gone"):
        next(results)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_that_cannot_be_opened_is_an_error_at_the_first_result(workers: int) -> None:
    results = Predictor("nowhere.tflite").map([1], workers, errors="return")
    with pytest.raises(ModelError, match="There is no file"):
        next(results)


def test_a_model_that_cannot_be_opened_in_a_process_is_an_error_here() -> None:
    with pytest.raises(ModelError, match="There is no file"):
        list(Predictor("nowhere.tflite").map([1], 1, processes=True))


def test_workers_run_at_the_same_time() -> None:
    """Two workers that must meet: each waits in a kernel's place until the other is there."""
    both = threading.Barrier(2, timeout=LONG)
    predict = Predictor(PICK, batch=False)
    real = predict._run_items

    def meeting(*arguments: Any) -> Any:
        both.wait()
        return real(*arguments)

    predict._run_items = meeting  # type: ignore[method-assign]
    assert picked(predict.map(map(np.int32, range(2)), 2)) == [0, 1]


@pytest.mark.parametrize(("workers", "processes"), [(2, False), (2, True)])
def test_closing_ends_the_workers_in_the_middle_of_a_run(workers: int, processes: bool) -> None:
    read: list[int] = []

    def items() -> Iterator[Any]:
        for number in itertools.count():
            read.append(number)
            yield np.zeros((600, 600), F32)

    results = Predictor(slow()).map(items(), workers, processes=processes)
    next(results)
    results.close()  # the fixture sees that nobody is left
    assert len(read) < 50


def test_an_iterator_that_is_dropped_ends_its_workers() -> None:
    results = Predictor(PICK).map(map(np.int32, itertools.repeat(3)), 2)
    next(results)
    del results
    gc.collect()


def test_the_interpreters_of_workers_serve_later_calls() -> None:
    predict = Predictor(PICK)
    list(predict.map(map(np.int32, range(20)), 2))
    idle = len(predict._pool._idle)
    assert 1 <= idle <= 2
    list(predict.map(map(np.int32, range(20)), 2))
    assert len(predict._pool._idle) <= 2


def test_progress_counts_each_result() -> None:
    seen: list[Any] = []
    items = list(map(np.int32, range(20)))
    list(Predictor(PICK).map(items, 2, progress=lambda done, total: seen.append((done, total))))
    assert seen == [(number, 20) for number in range(1, 21)]
    seen.clear()
    list(Predictor(PICK).map(iter(items), progress=lambda done, total: seen.append((done, total))))
    assert seen[-1] == (20, None)


def test_progress_draws_a_bar_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    list(Predictor(PICK).map(list(map(np.int32, range(20))), progress=True))
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    list(Predictor(PICK).map(list(map(np.int32, range(20))), progress=True))
    out, err = capfd.readouterr()
    assert not out
    assert "20/20" in err
    assert "/s" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"workers": 0}, "workers is 0"),
        ({"workers": True}, "workers is True"),
        ({"errors": "ignore"}, "errors is 'ignore'"),
        ({"progress": 3}, "progress is 3"),
    ],
)
def test_arguments_are_checked_at_once(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(TensorError, match=said):
        Predictor(PICK).map([], **arguments)
    with pytest.raises(TensorError, match="takes an iterable"):
        Predictor(PICK).map(3)  # type: ignore[arg-type]
    with pytest.raises(PluginError, match="stays in its process"):
        Predictor(PICK, plugins=PluginManager()).map([], processes=True)


@pytest.mark.parametrize("processes", [False, True])
def test_nothing_to_do_is_done(processes: bool) -> None:
    assert not list(Predictor("nowhere.tflite").map([], 2, processes=processes))


def test_limits_end_one_item_and_not_the_others() -> None:
    predict = Predictor(slow(), limits=Limits(max_seconds=1e-6))
    results = list(predict.map([np.zeros((600, 600), F32)] * 3, 2, errors="return"))
    assert all(isinstance(each, OpletError) and "took longer" in str(each) for each in results)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_a_worker_process_that_is_killed_is_an_error_that_says_so() -> None:
    import multiprocessing

    results = Predictor(slow()).map(itertools.repeat(np.zeros((600, 600), F32)), 1, processes=True)
    next(results)
    (process,) = [each for each in multiprocessing.active_children() if each.name == "oplet-map"]
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(InvokeError, match="ended with exit code -9 at items"):
        for _ in results:
            pass


SCRIPT = """
import itertools, signal, sys
import numpy as np
from oplet import Predictor
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background is started without
    predict = Predictor(sys.argv[1])
    try:
        for number, _ in enumerate(predict.map(itertools.repeat(np.zeros((8, 8, 1), np.int8)), 2, processes=sys.argv[2] == "processes")):
            if number == 20:
                print("running", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_ctrl_c_ends_everything(tmp_path: Any, kind: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    child = subprocess.Popen(
        [sys.executable, str(script), str(INT8), kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=LONG)
    assert (out, err, child.returncode) == ("interrupted\n", "", 0)
    for _ in range(6000):  # multiprocessing's own helper ends a moment after its parent
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process of the group still runs")


def test_a_script_without_a_guard_is_told_so(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport numpy as np\nfrom oplet import Predictor\nlist(Predictor(sys.argv[1]).map(np.zeros((3, 8, 8, 1), np.int8), 1, processes=True))\n"
    )
    done = run_child([sys.executable, script, INT8], code=1)
    assert "must keep its own code under `if __name__ ==" in done.stderr
