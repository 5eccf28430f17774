"""Threads that share kernels: all parts are done once, whoever is there to do them, and results do not depend on who did."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.children import LONG

from oplet import Interpreter, ModelBuilder
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import AddOptions, Conv2DOptions, DepthwiseConv2DOptions, Pool2DOptions
from oplet_compiled_ops.elementwise.plain.broadcasting import Repetition
from oplet_compiled_ops.elementwise.plain.plain_pairs import sum_kernel
from oplet_compiled_ops.threads import MOST_PARTS, team
from oplet_compiled_ops.threads.splitting import Many, cut, cut_pair, each, grid, in_turn, slots
from oplet_compiled_ops.threads.team import Step, ready, thunk
from oplet_testing import Spec, invoke, one_op_model

#: Adds two arrays.
ADD = sum_kernel("i4")
ONES = np.ones(2000, np.int32)


def counts_of(parts: int) -> Any:
    return np.zeros((parts, len(ONES)), np.int32)


def one_more(counts: Any, part: int) -> tuple[Any, ...]:
    """The arguments with which a kernel counts a part."""
    return counts[part], ONES, counts[part]


def counted(counts: Any) -> list[int]:
    """How often each part was done."""
    assert (counts == counts[:, :1]).all()
    return counts[:, 0].tolist()


def counter(parts: int, threads: int) -> tuple[Any, Callable[[], None]]:
    ready(ADD)
    counts = counts_of(parts)
    return counts, thunk([Step(ADD, [one_more(counts, part) for part in range(parts)])], threads)


def large_net() -> bytes:
    """A net whose ops are all worth several threads."""
    random = np.random.default_rng(3)
    builder = ModelBuilder("large net")
    graph = builder.add_subgraph()
    shape = [1, 64, 64, 32]
    names = iter(range(100))

    def tensor(*dims: int) -> int:
        return graph.add_tensor(f"t{next(names)}", np.float32, dims)

    def constant(*dims: int, data: Any = None) -> int:
        values = random.standard_normal(dims).astype(np.float32) * 0.2 if data is None else np.array(data, np.int32)
        return graph.add_tensor(f"c{next(names)}", values.dtype.type, values.shape, data=values)

    window: dict[str, Any] = {"padding": Padding.SAME, "stride_w": 1, "stride_h": 1}
    pool = Pool2DOptions(padding=Padding.SAME, stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    x = source = tensor(*shape)
    graph.set_inputs(source)
    for op, others, options, dims in (
        ("CONV_2D", [constant(32, 3, 3, 32), constant(32)], Conv2DOptions(**window), shape),
        ("RELU", [], None, shape),
        ("DEPTHWISE_CONV_2D", [constant(1, 3, 3, 32), constant(32)], DepthwiseConv2DOptions(depth_multiplier=1, **window), shape),
        ("ADD", [source], AddOptions(fused_activation_function=ActivationFunctionType.NONE), shape),
        ("PRELU", [constant(1, 1, 32)], None, shape),
        ("PAD", [constant(data=[[0, 0], [1, 2], [3, 0], [0, 16]])], None, [1, 67, 67, 48]),
        ("MAX_POOL_2D", [], pool, [1, 34, 34, 48]),
        ("LOGISTIC", [], None, [1, 34, 34, 48]),
    ):
        y = tensor(*dims)
        graph.add_operator(op, [x, *others], [y], options)
        x = y
    graph.set_outputs(x)
    return builder.to_bytes()


def run(interpreter: Interpreter, seed: int) -> Any:
    [detail] = interpreter.get_input_details()
    return invoke(interpreter, np.random.default_rng(seed).standard_normal(detail["shape"]).astype(np.float32))[0]


def made(threads: int, plugins: list[str] | None = None) -> Interpreter:
    interpreter = Interpreter(
        model_content=large_net(), num_threads=threads, plugins=plugins or ["oplet-builtin-ops", "oplet-compiled-ops"]
    )
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("parts", [1, 2, 5, MOST_PARTS])
def test_each_part_is_done_once(threads: int, parts: int) -> None:
    counts, call = counter(parts, threads)
    for number in range(1, 51):
        call()
        assert set(counted(counts)) == {number}


def test_results_are_the_same_bit_for_bit_whatever_the_threads() -> None:
    first = run(made(1), 0)
    for threads in (2, 3, 5):
        interpreter = made(threads)
        for _ in range(3):
            np.testing.assert_array_equal(run(interpreter, 0), first)
    np.testing.assert_allclose(run(made(1, ["oplet-builtin-ops"]), 0), first, rtol=1e-4, atol=1e-5)


def test_interpreters_in_several_threads_do_not_disturb_one_another() -> None:
    single = made(1)
    wanted = [run(single, seed) for seed in range(4)]
    interpreters = [made(2) for _ in range(4)]

    def work(seed: int) -> None:
        for _ in range(30):
            np.testing.assert_array_equal(run(interpreters[seed], seed), wanted[seed])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


@pytest.mark.sweep
def test_interpreters_come_and_go_while_others_run() -> None:
    wanted, interpreter = run(made(1), 1), made(2)
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            run(made(2), 2)
            gc.collect()

    others = threading.Thread(target=come_and_go)
    others.start()
    try:
        for _ in range(60):
            np.testing.assert_array_equal(run(interpreter, 1), wanted)
    finally:
        stop.set()
        others.join()


def test_memory_of_jobs_is_used_again() -> None:
    counter(2, 2)[1]()
    gc.collect()
    free = len(team._team()._free)
    _, call = counter(2, 2)
    assert len(team._team()._free) == free - 1
    call()
    del call
    gc.collect()
    assert len(team._team()._free) == free


def test_helpers_go_to_sleep_and_wake_up() -> None:
    counts, call = counter(8, 2)
    helper = team._team().helpers[0]
    for number in range(1, 4):
        call()
        assert set(counted(counts)) == {number}
        deadline = time.monotonic() + LONG
        while not helper.sleeps and time.monotonic() < deadline:
            time.sleep(0.01)
        assert helper.sleeps


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own() -> None:
    counts, call = counter(8, 2)
    call()
    child = os.fork()
    if child == 0:  # it may only tell how it went
        for _ in range(50):
            call()
        mine = team._team().helpers[0]._thread
        os._exit(0 if set(counted(counts)) == {51} and mine is not None and mine.is_alive() else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


CODE = """
import sys
sys.path.insert(0, sys.argv[1])
import test_team
interpreter = test_team.made(3)
for _ in range(3):
    test_team.run(interpreter, 0)
print("done")
"""


def test_python_ends_while_helpers_wait_for_work() -> None:
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", CODE, os.path.dirname(__file__)], capture_output=True, text=True, timeout=LONG
        )
        assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "done", "")


def test_arguments_of_other_types_are_refused() -> None:
    entry, right = ADD.entry(), np.zeros(3, np.int32)
    for wrong in (np.zeros(3, np.int64), np.zeros((3, 1), np.int32), np.zeros(6, np.int32)[::2], 1):
        with pytest.raises(TypeError, match="The kernel takes"):
            entry.pack((right, wrong, right))
    for arguments in ((right,), (right,) * 4):
        with pytest.raises(TypeError, match="The kernel takes"):
            entry.pack(arguments)


@pytest.mark.parametrize("threads", [1, 2, 3, 5, 40])
def test_parts_cover_all_rows_and_columns_once(threads: int) -> None:
    for rows in (1, 7, 64, 100):
        for multiple in (1, 6):
            ranges = cut(rows, 1000, threads, multiple)
            assert 1 <= len(ranges) <= MOST_PARTS
            assert [row for first, last in ranges for row in range(first, last)] == list(range(rows))
            assert all(first % multiple == 0 for first, _ in ranges)
            for by_columns in (False, True):
                blocks = grid(rows, multiple, 9, 1000, threads, by_columns)
                assert len(blocks) <= MOST_PARTS
                cells = [(r, c) for some, columns in blocks for r in range(*some) for c in range(*columns)]
                assert sorted(cells) == [(r, c) for r in range(rows) for c in range(9)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_long_work_is_cut_into_short_parts_that_cover_it_once(threads: int) -> None:
    for rows, multiple, worth, length in ((100, 6, 1, 10**6), (7, 1, 10**6, None), (10**9, 6, 10**7, None), (5000, 1, 0, 10**5)):
        ranges = cut(rows, worth, threads, multiple, length)
        total = length or worth
        assert slots(ranges) <= max(1, 2 * threads) < len(ranges) or rows < 10
        assert ranges[0][0] == 0
        assert ranges[-1][1] == rows
        assert len(ranges) >= min(total // 4096, rows // multiple) // 2
        some = ranges[:200]
        assert all(before[1] == after[0] and before[1] % multiple == 0 for before, after in pairwise(some))
        assert max(last - first for first, last in some) <= max(multiple, rows * 4096 // total + multiple)
    for by_columns in (False, True):
        for columns, least in ((9, 1), (1, 20)):
            blocks = grid(100, 6, columns, 10**6, threads, by_columns, least=least)
            cells = [(r, c) for some, others in blocks for r in range(*some) for c in range(*others)]
            assert sorted(cells) == [(r, c) for r in range(100) for c in range(columns)]
            assert all(last - first >= min(least, 100 - first) for (first, last), _ in blocks)
    assert list(in_turn(10, 4)) == [(0, 4), (4, 8), (8, 10)]


@pytest.mark.parametrize("threads", [1, 2])
def test_long_work_can_be_stopped_between_its_parts_and_done_again(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ready(ADD)
    counts = counts_of(100)
    used: list[int] = []

    def part(number: int, slot: int) -> tuple[Any, ...]:
        used.append(slot)
        return one_more(counts, number)

    numbers = Many(100, 2 * threads, lambda number: number)
    call = thunk([Step(ADD, [one_more(counts, 0)]), Step(ADD, each(numbers, part))], threads)
    call()
    assert counted(counts) == [2] + [1] * 99
    assert set(used) == set(range(slots(numbers)))
    looks: list[int] = []

    def stop() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(team, "checkpoint", stop)
    with pytest.raises(KeyboardInterrupt):
        call()
    done = 3 * len(set(used)) if threads > 1 else 3
    assert counted(counts) == [4] + [2] * (done - 1) + [1] * (100 - done)
    call()
    assert counted(counts) == [6] + [3] * (done - 1) + [2] * (100 - done)


def test_short_work_is_one_call_without_a_look_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreters = [made(1), made(2)]
    looks: list[int] = []
    monkeypatch.setattr(team, "checkpoint", lambda: looks.append(1))
    for interpreter in interpreters:
        run(interpreter, 0)
    assert not looks


def test_work_that_is_not_worth_it_stays_whole() -> None:
    assert cut(100, 1, 8) == cut(100, 0, 8) == [(0, 100)]
    assert grid(100, 1, 9, 0, 8, False) == [((0, 100), (0, 9))]


@pytest.mark.parametrize(
    "how",
    [
        Repetition(1, 1, 40, 0, False),
        Repetition(1, 1, 40, 0, True),
        Repetition(1, 8, 5, 0, False),
        Repetition(1, 8, 5, 0, True),
        Repetition(4, 3, 5, 0, True),
        Repetition(4, 3, 5, 5, False),
    ],
)
def test_pairs_are_cut_where_the_operand_that_repeats_is(how: Repetition) -> None:
    def seen(how: Repetition, large: int, small: int) -> list[tuple[int, int]]:
        """Which element of the small operand goes with each of the large one."""
        pairs = []
        for block in range(how.blocks):
            for row in range(how.rows):
                for column in range(how.columns):
                    other = row if how.per_row else block * how.advance + column
                    pairs.append((large + (block * how.rows + row) * how.columns + column, small + other))
        return pairs

    parts = cut_pair(how, 2, 1)
    assert len(parts) > 1
    assert [pair for part, large, small in parts for pair in seen(part, large[0], small[0])] == seen(how, 0, 0)
    for part, large, small in parts:
        assert large[1] - large[0] == part.blocks * part.rows * part.columns
        assert small[1] - small[0] == max(pair[1] for pair in seen(part, 0, 0)) + 1


def test_nan_and_zeros_are_those_of_numpy(agree: Callable[..., None]) -> None:
    x = np.random.default_rng(0).standard_normal((1, 64, 64, 16)).astype(np.float32)
    x[0, ::3, ::5] = np.nan
    x[0, 1::3, ::5] = -0.0
    pool = Pool2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1, filter_width=3, filter_height=3)
    agree(one_op_model("MAX_POOL_2D", [Spec("float32", x.shape)], [Spec("float32", (1, 62, 62, 16))], pool), [x])
    agree(one_op_model("RELU", [Spec("float32", x.shape)], [Spec("float32", x.shape)]), [x], threads=2)


@pytest.mark.parametrize("kind", ["float32", "int8"])
@pytest.mark.parametrize("borders", [[[0, 0], [0, 0], [0, 0], [3, 0]], [[1, 0], [0, 2], [5, 1], [0, 0]]])
def test_large_maps_are_padded_as_numpy_does(agree: Callable[..., None], kind: str, borders: list[list[int]]) -> None:
    shape = (2, 40, 30, 16)
    x = np.random.default_rng(0).integers(-128, 128, shape).astype(kind)
    padded = tuple(dim + sum(pair) for dim, pair in zip(shape, borders))
    quantization: tuple[Any, ...] = (0.5, -7) if kind == "int8" else ()
    inputs = [Spec(kind, shape, *quantization), np.array(borders, np.int32)]
    agree(one_op_model("PAD", inputs, [Spec(kind, padded, *quantization)]), [x], threads=2)


@pytest.mark.parametrize(
    ("shape", "borders", "value"),
    [((2, 4, 10, 30, 16), [1, 0, 0, 0, 0], []), ((2, 40, 30, 16), [1, 0, 0, 0], [3.5]), ((0, 40, 30, 16), [4, 0, 0, 0], [])],
    ids=["five dimensions", "a value", "nothing"],
)
def test_large_maps_that_are_not_padded_here_are_padded_as_numpy_does(
    agree: Callable[..., None], shape: tuple[int, ...], borders: list[int], value: list[float]
) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    padded = Spec("float32", tuple(dim + before for dim, before in zip(shape, borders)))
    constants = [np.array([[before, 0] for before in borders], np.int32), *(np.array([each], np.float32) for each in value)]
    agree(one_op_model("PAD", [Spec("float32", shape), *constants], [padded]), [x], threads=2)


@pytest.mark.parametrize("shape", [(2, 32, 20, 48), (1, 12, 12, 96)])
def test_the_average_of_a_whole_map_does_not_depend_on_threads(shape: tuple[int, ...]) -> None:
    batch, height, width, channels = shape
    options = Pool2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1, filter_width=width, filter_height=height)
    model = one_op_model("AVERAGE_POOL_2D", [Spec("float32", shape)], [Spec("float32", (batch, 1, 1, channels))], options)
    answers = []
    for threads, plugins in ((1, None), (2, None), (3, None), (1, ["oplet-builtin-ops"])):
        interpreter = Interpreter(model_content=model, num_threads=threads, plugins=plugins)
        interpreter.allocate_tensors()
        answers.append(run(interpreter, 5))
    for other in answers[1:3]:
        np.testing.assert_array_equal(other, answers[0])
    np.testing.assert_allclose(answers[3], answers[0], rtol=1e-5, atol=1e-6)
