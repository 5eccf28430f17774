"""Limits of a server: size, number and duration of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from oplet_serve.refusals import LARGE, Refusal

__all__ = ["Bodies", "Bounds", "Share"]

#: Large bodies that wait for their turn at a time.
_MOST_WAITING = 16


@dataclass(frozen=True)
class Bounds:
    """The limits that the server enforces on requests.

    Attributes:
        max_request_bytes: bytes of a request's body over HTTP, also after it was decompressed, and of a message over gRPC.
        max_message_bytes: bytes of a message over gRPC, which receives none in portions: nothing else is served meanwhile.
        max_bodies_bytes: bytes of all requests under way, over HTTP as they come and over gRPC once they are there.
        max_connections: connections over HTTP, beyond which requests get 503, and calls over gRPC at the same time.
        idle_seconds: seconds in which a connection's next request, with its headers, and a call's next message must have come; and in
            which something of a response must have been taken.
        read_seconds: seconds in which a request's body must have come.
        grace_seconds: seconds that requests under way get after SIGTERM or SIGINT.
    """

    max_request_bytes: int = 32 << 20
    max_message_bytes: int = 4 << 20
    max_bodies_bytes: int = 1 << 30
    max_connections: int = 256
    idle_seconds: float = 30.0
    read_seconds: float = 60.0
    grace_seconds: float = 30.0


class Bodies:
    """The bytes of all requests under way, of which each has a share.

    Args:
        most: the most bytes of all together.
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
                    await asyncio.sleep(0)
            finally:
                self._waiting -= 1

    @contextmanager
    def share(self) -> Iterator[Share]:
        """Give a request its share, which is given back at its end."""
        share = Share(self)
        try:
            yield share
        finally:
            self.held -= share.held


class Share:
    """The bytes of one request.

    Attributes:
        held: their number so far.
        turn: waits, between two parts of a large body.
    """

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.held = 0
        self.turn = bodies.turn

    def add(self, count: int) -> None:
        """Count more bytes of the request.

        Raises:
            Refusal: those of all requests are too many.
        """
        bodies = self._bodies
        if bodies.held + count > bodies.most:
            raise Refusal(f"All requests under way have {bodies.held} bytes, and may have {bodies.most}; try again later.", LARGE)
        bodies.held += count
        self.held += count
