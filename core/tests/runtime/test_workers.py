from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from oplet import Context, Interpreter, Limits, MutableOpResolver, Node, Registration, charge, checkpoint
from oplet.errors import CancelledError, DeadlineError, LimitError
from oplet.ops.ensure import current_meter
from oplet.runtime import workers as runtime_workers
from oplet.runtime.blas import SINGLE_THREADED, KernelNumpySettings, SingleThreaded, find_openblas
from oplet.runtime.workers import Workers
from oplet_testing import Spec, one_op_model


def test_parts_run_at_once_and_in_threads_that_numpy_s_settings_reach() -> None:
    barrier = threading.Barrier(3, timeout=600)
    seen: list[tuple[int, str]] = []

    def part() -> None:
        barrier.wait()
        seen.append((np.getbufsize(), np.geterr()["divide"]))

    workers = Workers(3)
    with KernelNumpySettings():
        for _ in range(2):
            workers.run([part] * 3)
    workers.close()
    assert len(seen) == 6
    assert set(seen) == {(512, "ignore")}


@pytest.mark.parametrize("failing", [0, 1])
def test_a_part_s_error_arrives_after_all_parts_are_done(failing: int) -> None:
    done: list[int] = []

    def fail() -> None:
        raise ValueError(f"part {failing}")

    def succeed() -> None:
        done.append(1)

    parts = [succeed, succeed, succeed]
    parts[failing] = fail
    workers = Workers(2)
    with pytest.raises(ValueError, match=f"part {failing}"):
        workers.run(parts)
    assert len(done) == 2
    workers.run([succeed, succeed])
    workers.close()
    assert len(done) == 4


def test_threads_start_with_the_first_work_and_end_with_their_owner() -> None:
    others = set(threading.enumerate())  # those of interpreters in other tests may end at any time

    def ours() -> set[threading.Thread]:
        return set(threading.enumerate()) - others

    workers = Workers(3)
    assert not ours()
    workers.run([lambda: None] * 3)
    started = ours()
    assert started
    workers.close()
    for thread in started:
        thread.join(600)
    assert not ours()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be told where to run")
def test_a_thread_that_leaves_the_core_of_the_other_may_use_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    usable = os.sched_getaffinity(0)
    here = min(usable)
    left: list[int] = []
    leave = runtime_workers._move_off
    monkeypatch.setattr(runtime_workers, "_current_core", lambda: here)
    monkeypatch.setattr(runtime_workers, "_move_off", lambda core: (left.append(core), leave(core)))
    seen: list[set[int]] = []
    workers = Workers(2)
    for _ in range(3):
        workers.run([lambda: None, lambda: seen.append(os.sched_getaffinity(0))])
    workers.close()
    assert left == [here]  # not each time: it may find its new core busy
    assert seen == [usable] * 3


def test_a_context_without_threads_runs_parts_one_after_another() -> None:
    done: list[int] = []
    Context().parallel([lambda: done.append(1), lambda: done.append(2)])()
    assert done == [1, 2]


def test_numpy_s_settings_are_back_afterwards() -> None:
    before = np.geterr(), np.getbufsize()
    with KernelNumpySettings():
        assert np.geterr()["over"] == "ignore"
    assert (np.geterr(), np.getbufsize()) == before


def test_blas_takes_one_thread_until_the_last_runner_is_done() -> None:
    counts = [4]
    library = SingleThreaded(lambda: counts[-1], counts.append)
    library.enter()
    library.enter()
    library.leave()
    assert counts == [4, 1]
    library.leave()
    assert counts == [4, 1, 4]


def test_a_process_that_is_forked_during_a_run_restores_blas_s_threads_after_its_own() -> None:
    counts = [4]
    library = SingleThreaded(lambda: counts[-1], counts.append)
    library.enter()
    library._lock.acquire()  # another thread may hold it at that moment; its release never comes in the child
    library._forget()
    library.enter()
    library.leave()
    assert counts == [4, 1, 1, 4]
    library.enter()
    library.leave()
    assert counts == [4, 1, 1, 4, 1, 4]
    library.leave()  # the run in the middle of which this process was forked
    assert library._running == 0


@pytest.mark.skipif(find_openblas() is None, reason="numpy multiplies with another BLAS")
def test_the_real_blas_obeys() -> None:
    with KernelNumpySettings():
        assert SINGLE_THREADED._count() == 1


class Parts:
    """An interpreter of one node, whose kernel has the second of two parts done by another thread than the one that invokes."""

    def __init__(self, part: Callable[[], None], seconds: float | None = None) -> None:
        self.thread: threading.Thread | None = None
        self.part = part
        self.began = threading.Event()
        resolver = MutableOpResolver()
        resolver.add_custom("Parts", Registration(bind=self._bind))
        model = one_op_model("Parts", [Spec("float32", [1])], [Spec("float32", [1])])
        limits = Limits(max_seconds=seconds, max_arena_bytes=1_000_000)
        self.interpreter = Interpreter(model_content=model, op_resolver=resolver, num_threads=2, limits=limits)
        self.interpreter.allocate_tensors()

    def _bind(self, context: Context, node: Node) -> Callable[[], None]:
        return context.parallel([self.began.wait, self._work])

    def _work(self) -> None:
        self.thread = threading.current_thread()
        self.began.set()
        self.part()


def forever() -> None:
    end = time.monotonic() + 600
    while time.monotonic() < end:
        checkpoint()


@pytest.mark.usefixtures("ticking")
def test_a_part_in_another_thread_ends_when_the_run_s_time_is_over() -> None:
    parts = Parts(forever, 0.05)
    for _ in range(2):
        with pytest.raises(DeadlineError, match=r"max_seconds=0\.05"):
            parts.interpreter.invoke()
        assert parts.thread is not threading.current_thread()


def test_a_part_in_another_thread_ends_when_the_run_is_cancelled() -> None:
    parts = Parts(forever)

    def cancel() -> None:
        parts.began.wait()
        parts.interpreter.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    with pytest.raises(CancelledError):
        parts.interpreter.invoke()
    other.join()


def test_what_a_part_in_another_thread_takes_counts_against_the_run_s_limit() -> None:
    parts = Parts(lambda: charge(2_000_000))
    with pytest.raises(LimitError, match="2000000 bytes"):
        parts.interpreter.invoke()


def test_threads_keep_nothing_of_a_run_that_was_stopped() -> None:
    parts = Parts(forever, 0.05)
    with pytest.raises(DeadlineError):
        parts.interpreter.invoke()
    meters: list[object] = []
    parts.part = lambda: meters.append(current_meter())
    parts.interpreter.invoke()
    assert meters == [parts.interpreter._runtime.session.meter]
    outside: list[object] = []  # by the same thread, for nobody's run
    parts.interpreter._runtime.session.workers.run(
        [lambda: None, lambda: outside.append((current_meter(), threading.current_thread()))]
    )
    assert outside == [(None, parts.thread)]
    assert current_meter() is None
