"""A model's bounded request queue: runs in worker threads, and batches rows of several requests if the model allows it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from prometheus_client import Gauge, Histogram

from oplet.errors import OpletError
from oplet_serve.doors.threads import WorkerThreads
from oplet_serve.refusals import BUSY, Refusal

__all__ = ["RequestQueue"]

Array = NDArray[Any]
Values = Mapping[str, Array]
Result = TypeVar("Result")

_WAITING = Gauge("oplet_requests_in_queue", "Requests of a model that run or wait", ["model"])
_JOINED = Histogram(
    "oplet_rows_per_run", "Rows of requests that were run together", ["model"], buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 1024)
)


@dataclass(eq=False)
class _Member:
    """A request that waits to run with others, or runs with them."""

    values: Values
    rows: int
    future: asyncio.Future[dict[str, Array]]


class _Group:
    """Requests with equal row shapes that wait to run as one batch."""

    def __init__(self, large: bool) -> None:
        self.large = large
        self.members: list[_Member] = []
        self.rows = 0
        self.timer: asyncio.TimerHandle | None = None
        #: Requests whose clients went away while they ran.
        self.left = 0


class RequestQueue:
    """The queue of requests to one model, with its worker threads and dynamic batching.

    Args:
        name: the model's name.
        run: computes outputs from a batch of inputs, by name; called in the worker threads.
        workers: the number of worker threads; if large requests occupy all of them, one more may run a small request.
        most: the most requests that may run or wait at a time.
        batch_size: the most rows of several requests that run together; 1 to run each request by itself.
        batch_time: seconds that a request waits for others to be batched with.
    """

    def __init__(
        self, name: str, run: Callable[[Values], dict[str, Array]], workers: int, most: int, batch_size: int, batch_time: float
    ) -> None:
        self._name = name
        self._run = run
        self._most = most
        self._batch_size = batch_size
        self._batch_time = batch_time
        self._threads = WorkerThreads(workers, f"oplet-serve-{name}")
        self._groups: dict[tuple[object, ...], _Group] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0
        self._waiting = _WAITING.labels(name)
        self._joined = _JOINED.labels(name)

    def enter(self) -> None:
        """Count a request as running or waiting; call `leave` when it is done.

        Raises:
            Refusal: the queue is full.
        """
        if self._count >= self._most:
            raise Refusal(
                f"The model '{self._name}' has {self._count} requests under way, which is its limit; try again later.", BUSY
            )
        self._count += 1
        self._waiting.set(self._count)

    def leave(self) -> None:
        """Count a request as done, after `enter`."""
        self._count -= 1
        self._waiting.set(self._count)

    async def in_thread(
        self, work: Callable[..., Result], *args: Any, large: bool = False, threads: WorkerThreads | None = None
    ) -> Result:
        """Run a function in one of the model's worker threads, or of `threads`; return its result. Large work goes after small work.

        A request that is cancelled while the function runs counts until it has ended.
        """
        return await (threads or self._threads).run(work, *args, large=large, abandoned=self._stay)

    def _stay(self) -> Callable[[], None]:
        """Count on a request whose client has gone while it runs, beyond the bound if need be; return what counts it out."""
        self._count += 1
        self._waiting.set(self._count)
        return self.leave

    async def outputs(self, values: Values, rows: int, large: bool = False) -> dict[str, Array]:
        """Return the outputs for a request's values, possibly batched with other requests.

        Args:
            rows: the number of rows of the values.
            large: whether the request is large; small requests go first then.

        Raises:
            OpletError: the outputs cannot be computed.
        """
        if not 0 < rows < self._batch_size:
            self._joined.observe(rows)
            return await self.in_thread(self._run, values, large=large)
        loop = asyncio.get_running_loop()
        key = (large, *((name, values[name].shape[1:]) for name in sorted(values)))
        group = self._groups.get(key)
        if group is not None and group.rows + rows > self._batch_size:
            self._flush(key, group)
            group = None
        if group is None:
            group = self._groups[key] = _Group(large)
            group.timer = loop.call_later(self._batch_time, self._flush, key, group)
        future: asyncio.Future[dict[str, Array]] = loop.create_future()
        member = _Member(values, rows, future)
        group.members.append(member)
        group.rows += rows
        if group.rows == self._batch_size:
            self._flush(key, group)
        try:
            return await future
        except asyncio.CancelledError:
            if member in group.members:
                group.members.remove(member)
                group.rows -= rows
            else:
                group.left += 1
                self._stay()
            raise

    def _flush(self, key: tuple[object, ...], group: _Group) -> None:
        if group.timer is not None:
            group.timer.cancel()
        if self._groups.get(key) is group:
            del self._groups[key]
        task = asyncio.get_running_loop().create_task(self._run_group(group))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_group(self, group: _Group) -> None:
        await self._threads.acquire(group.large)
        members, group.members = group.members, []  # without those whose clients are gone
        if not members:
            self._threads.release(group.large)
            return
        try:
            await self._run_members(members, group.large)
        finally:
            for _ in range(group.left):
                self.leave()

    async def _run_members(self, members: list[_Member], large: bool) -> None:
        """Run requests in the thread that is free for them; one by one if they fail together."""
        free = True
        if len(members) > 1:
            free = False
            try:
                parts = await self._threads.run_in_acquired(
                    self._run_joined, [(member.values, member.rows) for member in members], large=large
                )
            except OpletError:
                pass  # whose rows it was shows when they run one by one
            except Exception as error:
                _fail(members, error)
                return
            else:
                self._joined.observe(sum(member.rows for member in members))
                for member, part in zip(members, parts):
                    if not member.future.done():
                        member.future.set_result(part)
                return
        for member in members:
            if not free:
                await self._threads.acquire(large)
            free = False
            if member.future.done():
                self._threads.release(large)
                continue
            self._joined.observe(member.rows)
            try:
                made = await self._threads.run_in_acquired(self._run, member.values, large=large)
            except Exception as error:
                _fail([member], error)
            else:
                if not member.future.done():
                    member.future.set_result(made)

    def _run_joined(self, members: list[tuple[Values, int]]) -> list[dict[str, Array]]:
        together = self._run({name: np.concatenate([values[name] for values, _ in members]) for name in members[0][0]})
        ends = np.cumsum([rows for _, rows in members])
        return [
            {name: value[end - rows : end] for name, value in together.items()} for (_, rows), end in zip(members, ends.tolist())
        ]

    def close(self) -> None:
        """Accept no more work; running work finishes."""
        self._threads.close()

    @property
    def busy(self) -> bool:
        """Return whether requests are in progress."""
        return self._count > 0


def _fail(members: list[_Member], error: Exception) -> None:
    for member in members:
        if not member.future.done():
            member.future.set_exception(error)
