"""Child process that runs items for `Predictor.map`: it is started afresh, has its own interpreter, and ends when its pipe is
closed.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oplet.errors import InvokeError, OpletError, text_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from oplet_predictor.pool import Outcome, RunsItems

__all__ = ["WorkerProcess"]

#: Seconds for a process to end before it is killed.
_GRACE = 1.0

#: Python's own switch (3.11 and later) that puts no folder before the standard library, as the current folder may be a stranger's.
_SAFE_PATH = "PYTHONSAFEPATH"
_starting = threading.Lock()


class WorkerProcess:
    """One child process. One thread sends it items, any thread may stop it.

    Args:
        predictor: the Predictor that the child process gets a pickled copy of.
    """

    def __init__(self, predictor: RunsItems) -> None:
        self._predictor = predictor
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._stopped = False

    def run(self, first: int, items: Sequence[Any]) -> tuple[int, list[Outcome]]:
        """Run items in the child process; return the size of its batches and the outcome of each item.

        Raises:
            InvokeError: the child process ended before it answered.
            Exception: an item cannot be pickled, or the child raised an error that is no `OpletError`.
        """
        if self._process is None or self._pipe is None:
            self._start()
        process, pipe = self._process, self._pipe
        if process is None or pipe is None:
            raise InvokeError("The workers of Predictor.map were stopped.")
        try:
            pipe.send((first, items))
            answer = pipe.recv()
        except (EOFError, ConnectionError) as error:
            process.join(_GRACE)
            raise InvokeError(
                f"A worker process of Predictor.map ended with exit code {process.exitcode} at items {first} to {first + len(items) - 1}; a script "
                'that uses processes=True must keep its own code under `if __name__ == "__main__":`, and a killed process ran out of memory '
                "more often than not."
            ) from error
        if isinstance(answer, BaseException):
            raise answer
        batch, outcomes = answer
        return batch, outcomes

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        mine, its = context.Pipe()
        safe = os.environ.get(_SAFE_PATH)
        process = context.Process(target=_serve, args=(self._predictor, its, safe), name="oplet-map", daemon=True)
        with _with_safe_path(), _without_interrupts():
            process.start()
        its.close()  # so that the pipe ends with the process
        self._process, self._pipe = process, mine
        if self._stopped:
            self.stop()

    def stop(self) -> None:
        """Kill the process, whatever it is doing."""
        self._stopped = True
        if (process := self._process) is None:
            return
        process.terminate()
        process.join(_GRACE)
        if process.is_alive():
            process.kill()
            process.join(_GRACE)


@contextmanager
def _with_safe_path() -> Iterator[None]:
    """Set PYTHONSAFEPATH while a process is started: it imports nothing from the current folder before it has this process's
    `sys.path`.
    """
    with _starting:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            _restore(before)


def _restore(safe: str | None) -> None:
    if safe is None:
        os.environ.pop(_SAFE_PATH, None)
    else:
        os.environ[_SAFE_PATH] = safe


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT in this thread while a process is started, which inherits the block: Ctrl-C would print a traceback of its
    imports.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # not everywhere

    resource_tracker.ensure_running()  # when it starts, it unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(predictor: RunsItems, pipe: Connection, safe: str | None) -> None:
    """Run the items that arrive through the pipe until it is closed; `safe` is the user's own value of PYTHONSAFEPATH, to be
    restored.
    """
    _restore(safe)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what becomes of it
    lent = None
    while True:
        try:
            first, items = pipe.recv()
        except (EOFError, ConnectionError):
            return
        answer: Any
        try:
            if lent is None:
                lent = predictor._take()
            batch = predictor._batch_size(lent)
            answer = batch, [_portable(each) for each in predictor._run_items(lent, first, items, lambda: False)]
        except Exception as error:
            answer = _portable(error)
        try:
            pipe.send(answer)
        except (BrokenPipeError, ConnectionError):
            return


def _portable(outcome: Outcome) -> Outcome:
    """Return an item's result or error in a form that can be pickled, as errors of other packages may not be."""
    if not isinstance(outcome, BaseException):
        return outcome
    try:
        pickle.loads(pickle.dumps(outcome))
    except Exception:
        kind = InvokeError if isinstance(outcome, OpletError) else RuntimeError
        return kind(text_of(outcome, named=True))
    return outcome
