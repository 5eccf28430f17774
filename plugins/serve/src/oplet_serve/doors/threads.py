"""Worker threads that small work need not wait for behind large work; whose waiting work can be cancelled with all that it holds, and
whose abandoned work still counts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["WorkerThreads"]

Result = TypeVar("Result")
#: Small works that go before a large one that came earlier: it is not kept waiting for ever.
_OVERTAKEN = 8


class WorkerThreads:
    """Thread pool for coroutines with two priorities: small work goes before large work. Waiting work can be cancelled.

    If large work occupies all threads, one small work may run in an additional thread; after some small ones, a waiting large one
    goes first.

    Args:
        workers: the number of threads.
        name: the prefix of the threads' names.
    """

    def __init__(self, workers: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(workers + 1, thread_name_prefix=name)
        self._workers = workers
        # By whether they are large: who waits, in turn, and how many run.
        self._waiting: tuple[deque[asyncio.Future[None]], ...] = (deque(), deque())
        self._running = [0, 0]
        self._overtaken = 0

    async def acquire(self, large: bool = False) -> None:
        """Wait for a free thread and reserve it, until `release` or the end of `run_in_acquired`."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[large].append(turn)
        self._start()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with contextlib.suppress(ValueError):
                    self._waiting[large].remove(turn)
            else:
                self.release(large)
            raise

    def release(self, large: bool = False) -> None:
        """Release a reserved thread; `large` as in `acquire`."""
        self._running[large] -= 1
        self._start()

    def _start(self) -> None:
        """Give the threads that are free to those who wait."""
        while (large := self._next()) is not None:
            self._overtaken = self._overtaken + 1 if self._waiting[True] and not large else 0
            turn = self._waiting[large].popleft()
            if not turn.done():
                self._running[large] += 1
                turn.set_result(None)

    def _next(self) -> bool | None:
        """Return whether large work is next; None if none can start."""
        small, large = map(bool, self._waiting)
        free = sum(self._running) < self._workers
        if large and free and (not small or self._overtaken >= _OVERTAKEN):
            return True
        if small and (free or not self._running[False]):
            return False
        return None

    async def run(self, work: Callable[..., Result], *args: Any, large: bool = False, **how: Any) -> Result:
        """Run a function in a thread, once one is free; the arguments are those of `run_in_acquired`, and so is the result."""
        await self.acquire(large)
        return await self.run_in_acquired(work, *args, large=large, **how)

    async def run_in_acquired(
        self,
        work: Callable[..., Result],
        *args: Any,
        large: bool = False,
        abandoned: Callable[[], Callable[[], None]] | None = None,
    ) -> Result:
        """Run a function in a thread that `acquire` reserved; return its result.

        Args:
            work: the function.
            args: its arguments.
            large: whether the function may take long; it then waits for small work.
            abandoned: called if the caller is cancelled while the function runs; it returns a callback for when the function has ended.
        """
        loop = asyncio.get_running_loop()
        then: list[Callable[[], None]] = [lambda: self.release(large)]
        try:
            running = self._threads.submit(work, *args)
        except BaseException:
            self.release(large)
            raise

        def ended() -> None:
            for each in then:
                each()

        def tell(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended)

        running.add_done_callback(tell)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if abandoned is not None and not running.done():
                then.append(abandoned())
            raise
        finally:
            del running  # has what the function raised, whose traceback has this frame, and all that the callers hold

    def close(self) -> None:
        """Accept no more work; running work finishes."""
        self._threads.shutdown(wait=False)
