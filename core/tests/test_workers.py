from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from oplet import Context
from oplet.runtime import workers as runtime_workers
from oplet.runtime.arithmetic import Arithmetic
from oplet.runtime.blas import SINGLE_THREADED, SingleThreaded
from oplet.runtime.workers import Workers


def test_parts_run_at_once_and_in_threads_that_numpy_s_settings_reach() -> None:
    barrier = threading.Barrier(3, timeout=10)
    seen: list[tuple[int, str]] = []

    def part() -> None:
        barrier.wait()
        seen.append((np.getbufsize(), np.geterr()["divide"]))

    workers = Workers(3)
    with Arithmetic():
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
        thread.join(10)
    assert not ours()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be told where to run")
def test_a_thread_that_leaves_the_core_of_the_other_may_use_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    usable = os.sched_getaffinity(0)
    here = min(usable)
    left: list[int] = []
    leave = runtime_workers._leave
    monkeypatch.setattr(runtime_workers, "_current_core", lambda: here)
    monkeypatch.setattr(runtime_workers, "_leave", lambda core: (left.append(core), leave(core)))
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
    with Arithmetic():
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


@pytest.mark.skipif(SINGLE_THREADED is None, reason="numpy multiplies with another BLAS")
def test_the_real_blas_obeys() -> None:
    assert SINGLE_THREADED is not None
    with Arithmetic():
        assert SINGLE_THREADED._count() == 1
