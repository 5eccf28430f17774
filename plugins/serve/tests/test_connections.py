"""What uvicorn would keep of a connection without end is bounded: headers, requests in advance, unread responses, work for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from tests.children import LONG
from uvicorn.server import ServerState

from oplet_serve.doors.connections import timed_protocol

GET = b"GET / HTTP/1.1\r\nHost: x\r\n"


class Transport(asyncio.Transport):
    """A client that takes nothing but what it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.size, self.closed = b"", 0, False

    def write(self, data: Any) -> None:
        self.sent += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.size

    def pause_reading(self) -> None:
        pass

    abort, resume_reading = close, pause_reading


async def waits(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.Event().wait()


def connected(test: Callable[[Any, Transport], Awaitable[None]], seconds: float = LONG, app: Any = waits) -> None:
    """Run a test with a connection."""

    async def run() -> None:
        config = uvicorn.Config(app, http=timed_protocol(seconds), ws="none", lifespan="off", log_config=None)
        config.load()
        made: Any = config.http_protocol_class
        connection, transport = made(config=config, server_state=ServerState(), app_state={}), Transport()
        connection.connection_made(transport)
        await test(connection, transport)
        connection.connection_lost(None)
        await asyncio.gather(*connection.tasks)

    asyncio.run(asyncio.wait_for(run(), LONG))


HEADS = {
    "a header": (GET + b"X-A: ", b"a"),
    "headers": (GET, b"a:\r\n"),
    "a path": (b"GET /", b"a"),
    "trailers": (GET + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n", b"a:\r\n"),
    "an extension of a chunk": (GET + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a"),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_without_end_ends_the_connection(name: str) -> None:
    begin, more = HEADS[name]

    async def test(connection: Any, transport: Transport) -> None:
        connection.data_received(begin)
        for _ in range(20):
            if not transport.closed:
                connection.data_received(more * (8192 // len(more)))
        assert transport.closed
        assert transport.sent.startswith(b"HTTP/1.1 400")

    connected(test)


def test_bodies_of_any_size_and_many_requests_one_after_the_other_are_taken() -> None:
    async def answers(scope: Any, receive: Any, send: Any) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message["body"]), message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"7")]})
        await send({"type": "http.response.body", "body": b"%07d" % size})

    async def test(connection: Any, transport: Transport) -> None:
        for number in range(1, 50):
            connection.data_received(GET + b"X-A: " + b"a" * 5000 + b"\r\nContent-Length: 200000\r\n\r\n")
            for _ in range(10):
                connection.data_received(b"b" * 20_000)
            while transport.sent.count(b"0200000") < number:
                await asyncio.sleep(0)
        assert not transport.closed

    connected(test, app=answers)


def test_requests_in_advance_are_bounded() -> None:
    pytest.importorskip("httptools")

    async def test(connection: Any, transport: Transport) -> None:
        connection.data_received((GET + b"\r\n") * 20)
        assert (len(connection.pipeline), transport.closed) == (19, False)
        connection.data_received((GET + b"\r\n") * 10_000)
        assert (len(connection.pipeline) < 100, transport.closed) == (True, True)

    connected(test)


def test_a_request_whose_client_goes_away_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await waits(scope, receive, send)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def test(connection: Any, transport: Transport) -> None:
        connection.data_received(GET + b"\r\n")
        await asyncio.sleep(0)

    connected(test, app=app)
    assert ended == ["cancelled"]
    assert not caplog.records


@pytest.mark.parametrize(("taken", "lasts"), [(0, False), (1, False), (100, True)])
def test_a_response_is_taken_in_parts_of_some_size_or_dropped(taken: int, lasts: bool) -> None:
    async def test(connection: Any, transport: Transport) -> None:
        connection.data_received(GET + b"\r\n")
        await asyncio.sleep(0)
        transport.size = 1000
        connection.pause_writing()
        while transport.size > 200 and not transport.closed:
            due = connection._timer.when()
            transport.size -= taken
            while connection._timer.when() == due and not transport.closed:
                await asyncio.sleep(0.001)
        assert transport.closed != lasts

    connected(test, 0.01)
