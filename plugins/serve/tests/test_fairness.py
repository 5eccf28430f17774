"""Who waits for whom: small work does not wait behind large work, large work is not kept waiting for ever, and none keeps Python for long."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.children import LONG

from oplet.errors import OpletError
from oplet_serve.doors.rest_messages import read_request
from oplet_serve.doors.threads import WorkerThreads
from oplet_serve.queueing import RequestQueue
from oplet_serve.refusals import Refusal
from oplet_serve.values.slices import SLICE, SMALL_FIRST, dumped, without
from oplet_serve.values.tensors import Scalars, TensorSpec, read_tensor


def run(work: Callable[[], Any]) -> Any:
    """What comes of a coroutine, in time."""
    return asyncio.run(asyncio.wait_for(work(), LONG))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_small_request_is_answered_while_large_ones_hold_all_workers_and_the_queue(workers: int) -> None:
    go = threading.Event()

    def compute(values: Any) -> dict[str, Any]:
        if values["x"][0, 0]:
            go.wait(LONG)
        return {"y": values["x"]}

    async def ask() -> None:
        queue = RequestQueue("fair", compute, workers, 100, 1, 0.0)
        large = [asyncio.ensure_future(queue.outputs({"x": np.ones((1, 1))}, 1, True)) for _ in range(20)]
        await asyncio.sleep(0)
        for _ in range(3):
            assert (await queue.outputs({"x": np.zeros((1, 1))}, 1))["y"].tolist() == [[0]]
        assert not any(each.done() for each in large)
        go.set()
        await asyncio.gather(*large)
        queue.close()

    run(ask)


def test_large_work_comes_to_its_turn_beside_small_work_without_end() -> None:
    async def ask() -> list[str]:
        threads = WorkerThreads(1, "turns")
        done: list[str] = []

        async def work(name: str, large: bool) -> None:
            await threads.run(done.append, name, large=large)

        await asyncio.gather(work("first", True), work("large", True), *(work("small", False) for _ in range(100)))
        threads.close()
        return done

    done = run(ask)
    assert len(done) == 102
    assert done.index("large") < 50


def test_no_more_works_run_than_there_are_threads_but_for_one_small_one() -> None:
    async def ask(sizes: list[bool]) -> int:
        threads = WorkerThreads(2, "bounded")
        running, most, lock = 0, 0, threading.Lock()

        def work() -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.01)
            with lock:
                running -= 1

        await asyncio.gather(*(threads.run(work, large=large) for large in sizes))
        threads.close()
        return most

    assert run(lambda: ask([False] * 10)) == 2
    assert run(lambda: ask([True] * 10)) == 2
    assert run(lambda: ask([True, False] * 10)) <= 3


def test_who_is_cancelled_while_waiting_or_given_a_thread_leaves_it_to_others() -> None:
    async def ask() -> list[int]:
        threads = WorkerThreads(1, "cancelled")
        await threads.acquire(large=True)
        waiting = [asyncio.ensure_future(threads.acquire(large=True)) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        threads.release(large=True)  # to the second
        waiting[1].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return await threads.run(lambda: [1], large=True)

    assert run(ask) == [1]


def test_what_failed_work_held_is_gone_with_its_error() -> None:
    """Without the collector of cycles, which may come late: it is a request's body."""
    held: list[weakref.ref[threading.Event]] = []

    def work(body: threading.Event) -> None:
        raise Refusal("no")

    async def request(threads: WorkerThreads) -> None:
        body = threading.Event()
        held.append(weakref.ref(body))
        await threads.run(work, body, large=True)

    async def ask() -> None:
        threads = WorkerThreads(1, "failing")
        for _ in range(3):
            with contextlib.suppress(Refusal):
                await request(threads)
        await threads.run(int)  # a thread keeps its last work until the next
        await asyncio.sleep(0.05)
        threads.close()

    gc.disable()
    try:
        run(ask)
        assert [body() for body in held] == [None] * 3
    finally:
        gc.enable()


def test_large_work_stops_between_slices_while_a_small_request_is_under_way_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    slices, done = 50, []
    waits: list[tuple[threading.Thread, float, bool]] = []

    class Noted(threading.Event):
        """Is waited for without any time."""

        def wait(self, timeout: float | None = None) -> bool:
            waits.append((threading.current_thread(), timeout or LONG, self.is_set()))
            return self.is_set()

    def large() -> None:
        done.append(without(b"ab" * (slices * SLICE // 2), b"a") == b"b" * (slices * SLICE // 2))

    monkeypatch.setattr(SMALL_FIRST, "_none", Noted())
    with SMALL_FIRST:
        thread = threading.Thread(target=large)
        thread.start()
        thread.join()  # though the small one is still there
        without(b"ab" * SLICE, b"a")  # the small one's own
    assert done == [True]
    assert waits == [(thread, 0.004, False)] * slices


def _json(data: bytes, shape: bytes) -> bytes:
    return b'{"inputs":[{"name":"x","datatype":"FP32","shape":%s,"data":%s}]}' % (shape, data)


def _read(body: bytes) -> None:
    request = read_request(body, None, 1, 1)
    [tensor] = request.inputs
    read_tensor(TensorSpec("x", np.dtype("float32"), (-1,) * len(tensor.shape)), "FP32", tensor.shape, tensor.data)


_COUNT = 1 << 20
LARGE: dict[str, Callable[[], Callable[[], object]]] = {
    "numbers": lambda: _reading(_json(b"[" + b"0," * _COUNT + b"0]", b"[%d]" % (_COUNT + 1))),
    "lists of one": lambda: _reading(_json(b"[" + b"[1]," * _COUNT + b"[1]]", b"[%d,1]" % (_COUNT + 1))),
    "empty lists": lambda: _reading(_json(b"[" + b"[]," * _COUNT + b"[]]", b"[4]")),
    "objects": lambda: _reading(b'{"inputs":[' + b"{}," * _COUNT + b"{}]}"),
    "backslashes": lambda: _reading(_json(b'["' + b"\\\\" * _COUNT + b'"]', b"[1]")),
    "numbers over gRPC": lambda: _scalars([1.0] * _COUNT),
    "an answer": lambda: _dumping(np.full(_COUNT, 0.1, np.float32)),
}


def _reading(body: bytes) -> Callable[[], object]:
    return lambda: _read(body)


def _scalars(values: list[float]) -> Callable[[], object]:
    spec = TensorSpec("x", np.dtype("float32"), (-1,))
    return lambda: read_tensor(spec, "FP32", [len(values)], Scalars(values, "float32"))


def _dumping(array: Any) -> Callable[[], object]:
    return lambda: dumped(array)


def _steps(work: Callable[[], object]) -> list[float]:
    """What each line that Python runs takes of the thread's own time: between two of them other threads have their turn."""
    steps: list[float] = []
    last = time.thread_time()

    def step(frame: Any, event: str, argument: object) -> Any:
        nonlocal last
        now = time.thread_time()
        steps.append(now - last)
        last = time.thread_time()
        return step

    def traced() -> None:
        nonlocal last
        sys.settrace(step)
        last = time.thread_time()
        with contextlib.suppress(Refusal, OpletError):
            work()
        sys.settrace(None)

    thread = threading.Thread(target=traced)
    thread.start()
    thread.join()
    return steps


@pytest.mark.parametrize("name", LARGE)
def test_no_step_of_large_work_goes_over_all_that_is_read_or_written(name: str) -> None:
    work = LARGE[name]()
    for _ in range(10):  # what a busy system or a garbage collection adds to a step is another one's the next time
        steps = _steps(work)
        assert len(steps) > 20
        if max(steps) < 0.25 * sum(steps):
            return
    pytest.fail(f"a step takes {max(steps):.4f} of {sum(steps):.4f} s")
