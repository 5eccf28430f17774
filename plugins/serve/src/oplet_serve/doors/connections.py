"""HTTP connections that are closed when nothing comes of them, and bounded in what uvicorn keeps without end: headers, requests in advance,
answers that nobody reads, work for clients that are gone.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["timed_protocol"]

#: Bytes that may come with no part of a body and no end of headers among them, and requests that may wait for the one before.
_MOST_HEAD, _MOST_AHEAD = 1 << 16, 32
#: Times that a client may let the timeout pass until it has taken all of a response, of which it takes as large a part each time.
_TIMES = 10


def timed_protocol(seconds: float) -> type[asyncio.Protocol]:
    """Return a subclass of uvicorn's HTTP protocol that closes idle connections.

    Args:
        seconds: timeout for the next request's headers after the connection was opened or the last response written; and for the
            client to read a tenth of a pending response.
    """
    base: Any = AutoHTTPProtocol
    is_counted = hasattr(base, "on_body")  # h11, which uvicorn takes where httptools is missing, has bounds of its own

    class TimedProtocol(base):  # type: ignore[misc, unused-ignore]
        """A connection with a clock."""

        app: Any

        def connection_made(self, transport: Any) -> None:
            self._untaken = self._least = self._head = 0
            self._timer: asyncio.TimerHandle | None = None
            self._task: asyncio.Task[Any] | None = None
            self._app, self.app = self.app, self._answer
            super().connection_made(transport)
            self._wind()

        async def _answer(self, *arguments: Any) -> None:
            """Call the application; cancelled when the client goes away, and by uvicorn at the end, which logs what is raised."""
            self._task = asyncio.current_task()
            try:
                if not self.cycle.disconnected:
                    await self._app(*arguments)
            except asyncio.CancelledError:
                self.cycle.disconnected = True
                self.transport.abort()
            finally:
                self._task = None

        def data_received(self, data: bytes) -> None:
            self._head += len(data)
            super().data_received(data)
            if is_counted and self._head > _MOST_HEAD:
                self.send_400_response(f"The headers have more than {_MOST_HEAD} bytes.")

        def on_headers_complete(self) -> None:
            self._head = 0
            if len(self.pipeline) >= _MOST_AHEAD:
                raise ValueError("There are too many requests on the connection.")  # which ends it
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._head = 0
            super().on_body(body)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wind()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._wind()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)
            if self._task is not None:
                self._task.cancel()

        def _wind(self, least: int | None = None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._untaken = self.transport.get_write_buffer_size()
            self._least = max(1, self._untaken // _TIMES) if least is None else least
            self._timer = self.loop.call_later(seconds, self._late)

        def _late(self) -> None:
            size = self.transport.get_write_buffer_size()
            if not size and self.cycle is not None and not self.cycle.response_complete:
                return  # a request is under way; the time of its body and of its prediction are bounded
            if 0 < size <= self._untaken - self._least:
                self._wind(self._least)  # the client takes the response, if slowly
            else:
                self.transport.abort()

    return TimedProtocol
