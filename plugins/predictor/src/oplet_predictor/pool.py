"""Pool of a Predictor's open models in one process: each is borrowed by one thread at a time and returned for the next."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from oplet.errors import OpletError, StateError
from oplet_predictor.batch_decision import BatchPlan
from oplet_predictor.opened_model import OpenedModel

__all__ = ["Lent", "Outcome", "Pool", "RunsItems"]

#: The outputs of an item, or why there are none; None for an item that was not run, as the workers were stopped.
Outcome = Any


class Lent:
    """The interpreters of a model that the pool lends to one thread: for single rows, and for batches, opened at first use.

    Attributes:
        single: the model for one row.
    """

    def __init__(self, single: OpenedModel, open_for: Callable[[int], OpenedModel]) -> None:
        self.single = single
        self._open_for = open_for
        self._batch: OpenedModel | None = None

    def batch(self, size: int) -> OpenedModel:
        """Return the model opened for batches of this size; later calls return the same."""
        if self._batch is None:
            self._batch = self._open_for(size)
        return self._batch

    def cancel(self) -> None:
        """Cancel the run that another thread is in with this model, if any."""
        for each in (self.single, self._batch):
            if each is not None:
                each.cancel()

    def close(self) -> None:
        """Close this model's interpreters."""
        self.single.close()
        if self._batch is not None:
            self._batch.close()


class RunsItems(Protocol):
    """Protocol: the methods of Predictor that workers call."""

    def _take(self) -> Lent: ...

    def _give(self, lent: Lent) -> None: ...

    def _batch_size(self, lent: Lent) -> int: ...

    def _run_items(self, lent: Lent, first: int, items: Sequence[Any], stopped: Callable[[], bool]) -> list[Outcome]: ...

    def _ensure_picklable(self) -> None: ...


class Pool:
    """Pool of a Predictor's open models in this process; each is lent to one thread at a time.

    Args:
        name: the model in messages.
        open_for: opens the model for a given number of rows per run.
        decide: decides from the model for one row whether rows are run in batches, and of which size.
    """

    def __init__(self, name: str, open_for: Callable[[int], OpenedModel], decide: Callable[[OpenedModel], BatchPlan]) -> None:
        self._name = name
        self._open_for = open_for
        self._decide = decide
        self._idle: list[Lent] = []
        self._closed = False
        self._plan: BatchPlan | None = None
        self._deciding = threading.Lock()
        _POOLS.add(self)

    @contextmanager
    def lend(self) -> Iterator[Lent]:
        """Borrow a model for the calling thread; it is returned to the pool afterwards, or closed if anything but an `OpletError`
        is raised.

        Raises:
            StateError: the pool was closed.
            OpletError: the model cannot be opened.
        """
        lent = self.take()
        try:
            yield lent
        except OpletError:
            self.give(lent)
            raise
        except BaseException:
            lent.close()
            raise
        self.give(lent)

    def take(self) -> Lent:
        """Borrow a model from the pool, or open one; the caller returns it with `give`."""
        if self._closed:
            raise StateError(f"The Predictor of {self._name} was closed and cannot run any more; make another one.")
        try:
            return self._idle.pop()  # the last one given back: its memory is the most likely to be in the cache
        except IndexError:
            return Lent(self._open_for(1), self._open_for)

    def give(self, lent: Lent) -> None:
        """Return a borrowed model to the pool."""
        self._idle.append(lent)
        if self._closed:
            self._close_idle()

    def plan(self, lent: Lent) -> BatchPlan:
        """Return whether rows are run in batches, and of which size; decided by the first thread that asks."""
        with self._deciding:
            if self._plan is None:
                self._plan = self._decide(lent.single)
            return self._plan

    def close(self) -> None:
        """Close all models; those in use are closed when they are returned."""
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        failure: OpletError | None = None
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                break
            except OpletError as error:  # the others still have to be closed
                failure = failure or error
        if failure is not None:
            raise failure

    def _forget(self) -> None:
        """Empty the pool in a forked process: the parent's interpreters have threads and devices that do not exist here."""
        _OF_PARENTS.append(self._idle)
        self._idle = []
        self._deciding = threading.Lock()


#: The pools of this process, which a forked child empties.
_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()
#: What forked children inherited: never closed here, as that would end what is the parent's.
_OF_PARENTS: list[list[Lent]] = []


def _forget_all() -> None:
    for pool in list(_POOLS):
        pool._forget()


def _close_all() -> None:
    """Close idle models at the end of the program, while the modules that closing needs are still loaded."""
    for pool in list(_POOLS):
        with suppress(OpletError):
            pool._close_idle()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
