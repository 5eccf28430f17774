"""Limits of a server: size, number and duration of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlserver.types import InferenceResponse

from oplet_serve.doors.threads import WorkerThreads
from oplet_serve.refusals import LARGE, Refusal
from oplet_serve.values.slices import SMALL, SMALL_FIRST
from oplet_serve.values.tensors import nbytes_of

__all__ = ["Bodies", "Bounds", "Share", "written"]

#: Large bodies that wait for their turn at a time.
_MOST_WAITING = 16
#: Looks of one that passes whether small requests are gone, and the seconds between.
_LOOKS, _PAUSE = 4, 0.001


@dataclass(frozen=True)
class Bounds:
    """The limits that the server enforces on requests."""

    max_request_bytes: int = 32 << 20  #: Bytes of a request's body over HTTP, also after it was decompressed.
    #: Bytes of a message over gRPC, which is received as a whole: nothing else is served meanwhile.
    max_message_bytes: int = 4 << 20
    #: Bytes of all requests in progress, over HTTP as they arrive, over gRPC once received; and of their responses until clients
    #: have taken them.
    max_bodies_bytes: int = 1 << 30
    max_connections: int = 256  #: Concurrent HTTP connections (further ones get 503), and concurrent gRPC calls.
    #: Timeout in seconds for a connection's next request headers, for a gRPC call's next message, and for the client to read any
    #: part of a response.
    idle_seconds: float = 30.0
    read_seconds: float = 60.0  #: Timeout in seconds for a request's body to arrive.
    grace_seconds: float = 30.0  #: Seconds that requests in progress may take to finish after SIGTERM or SIGINT.


class Bodies:
    """Counter of the bytes of all requests in progress, checked against a limit.

    Args:
        most: the most bytes that all requests in progress may have together.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._turn, self._waiting = asyncio.Lock(), 0

    async def turn(self) -> None:
        """Let a part of one large body pass at a time; others pass beside once many wait, as they would only pile up."""
        if self._waiting < _MOST_WAITING:
            self._waiting += 1
            try:
                async with self._turn:
                    for _ in range(_LOOKS):
                        await asyncio.sleep(_PAUSE if SMALL_FIRST.count else 0)
                        if not SMALL_FIRST.count:
                            break
            finally:
                self._waiting -= 1


@dataclass(eq=False)
class Share:
    """Counter of the bytes of one request and of its response; a context manager, at whose end they are gone."""

    bodies: Bodies  #: The counter of all requests.
    held: int = 0  #: The number of bytes so far.

    def add(self, count: int) -> None:
        """Count further bytes.

        Raises:
            Refusal: all requests in progress together have too many bytes.
        """
        bodies = self.bodies
        if bodies.held + count > bodies.most:
            raise Refusal(f"All requests under way have {bodies.held} bytes, and may have {bodies.most}; try again later.", LARGE)
        bodies.held += count
        self.held += count

    def replace(self, count: int) -> None:
        """Count so many bytes in place of those so far; raise as `add` does."""
        self.release()
        self.add(count)

    def release(self, *_: object) -> None:
        """Subtract the bytes from the total."""
        self.bodies.held -= self.held
        self.held = 0

    def __enter__(self) -> Share:
        return self

    __exit__ = release


async def written(
    share: Share, threads: WorkerThreads, response: InferenceResponse, write: Callable[..., Any], *args: Any
) -> Any:
    """Serialize a response by `write(response, *args)`, in a thread if it is large; its outputs count in place of the request's bytes.

    Raises:
        Refusal: all requests in progress together have too many bytes.
    """
    size = len(response.id or "") + sum(nbytes_of(output.data) for output in response.outputs)
    share.replace(size)
    if size > SMALL:
        return await threads.run(write, response, *args, large=True)
    return write(response, *args)
