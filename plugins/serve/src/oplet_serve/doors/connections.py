"""HTTP connections that are closed when nothing comes of them; uvicorn itself waits for ever for the end of a request's headers."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["timed_protocol"]


def timed_protocol(seconds: float) -> type[asyncio.Protocol]:
    """Return a subclass of uvicorn's HTTP protocol that closes idle connections.

    Args:
        seconds: timeout for the next request's headers after the connection was opened or the last response written; and for the
            client to read any part of a pending response.
    """
    base: Any = AutoHTTPProtocol

    class TimedProtocol(base):  # type: ignore[misc, unused-ignore]
        """A connection with a clock."""

        def connection_made(self, transport: Any) -> None:
            self._untaken = 0
            self._timer: asyncio.TimerHandle | None = None
            super().connection_made(transport)
            self._wind()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wind()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

        def _wind(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._untaken = self.transport.get_write_buffer_size()
            self._timer = self.loop.call_later(seconds, self._late)

        def _late(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                return  # a request is under way; the time of its body and of its prediction are bounded
            if 0 < self.transport.get_write_buffer_size() < self._untaken:
                self._wind()  # the client takes the response, if slowly
            else:
                self.transport.abort()

    return TimedProtocol
