"""Worker threads whose waiting work can be cancelled with all that it holds, and whose abandoned work still counts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["WorkerThreads"]

Result = TypeVar("Result")


class WorkerThreads:
    """Threads for work of coroutines. What waits, waits in the event loop: an executor's queue keeps what was cancelled.

    Args:
        workers: the number of threads.
        name: of the threads.
    """

    def __init__(self, workers: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._free = asyncio.Semaphore(workers)

    async def acquire(self) -> None:
        """Wait for a free thread, which is the caller's until `release` or the end of `run_in_acquired`."""
        await self._free.acquire()

    def release(self) -> None:
        """Give back a thread that was acquired and not used."""
        self._free.release()

    async def run(
        self, work: Callable[..., Result], *args: Any, abandoned: Callable[[], Callable[[], None]] | None = None
    ) -> Result:
        """Run a function in a thread, once one is free; return its result.

        Args:
            work: the function.
            args: its arguments.
            abandoned: called if the caller is cancelled while the function runs; what it returns is called when the function has ended.
        """
        await self.acquire()
        return await self.run_in_acquired(work, *args, abandoned=abandoned)

    async def run_in_acquired(
        self, work: Callable[..., Result], *args: Any, abandoned: Callable[[], Callable[[], None]] | None = None
    ) -> Result:
        """Run a function in a thread that was acquired; see `run`."""
        loop = asyncio.get_running_loop()
        then: list[Callable[[], None]] = [self.release]
        try:
            running = self._threads.submit(work, *args)
        except BaseException:
            self.release()
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

    def close(self) -> None:
        """Accept no more work; running work finishes."""
        self._threads.shutdown(wait=False)
