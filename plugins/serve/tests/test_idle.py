"""Clients that hold connections and calls without asking anything lose them, and leave nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from mlserver.grpc import dataplane_pb2 as pb
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub
from plugins.serve.tests.models import mirror
from plugins.serve.tests.serving import Server, message, served
from tests.children import LONG

from oplet_serve.queueing import RequestQueue
from oplet_serve.refusals import Refusal

#: Seconds after which a server is taken never to close what is idle; it does after one.
PATIENCE = LONG
MOST = 6


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that waits for one second, and for few."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "floor.tflite").write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    (folder / "wide.tflite").write_bytes(mirror(np.float32, [1, 1 << 20], [-1, 1 << 20]))
    with served(folder, "--idle-seconds", 1, "--max-connections", MOST) as server:
        yield server
        status, written = server.end()
        assert (status, "Traceback" in written) == (0, False), written


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.environment
@pytest.mark.parametrize("sent", [b"", b"G", b"POST /v2/models/floor/infer HTTP/1.1\r\nHost: x\r\nX-Half: "])
def test_half_a_request_is_closed(impatient: Server, sent: bytes) -> None:
    held = [socket.create_connection(("127.0.0.1", impatient.http_port), timeout=PATIENCE) for _ in range(MOST)]
    try:
        for each in held:
            each.sendall(sent)
        for each in held:
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(100) == b""
        assert eventually(lambda: impatient.ask("GET", "/v2/health/live")[0] == 200)
    finally:
        for each in held:
            each.close()


@pytest.mark.environment
def test_a_byte_after_a_response_holds_no_connection(impatient: Server) -> None:
    with socket.create_connection(("127.0.0.1", impatient.http_port), timeout=PATIENCE) as held:
        held.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert held.recv(1000).startswith(b"HTTP/1.1 200")
        held.sendall(b"G")
        with contextlib.suppress(ConnectionResetError):
            while held.recv(1000):
                pass


def held_by_server(port: int, other: int) -> bool:
    """Whether a process has the server's end of a connection; the kernel may keep what it could not send for longer."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if (words[1][-4:], words[2][-4:]) == (f"{port:04X}", f"{other:04X}"):
            return words[9] != "0"
    return False


@pytest.mark.environment
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="who has a connection is read from /proc")
def test_a_response_that_nobody_reads_is_dropped(impatient: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", impatient.http_port, timeout=PATIENCE)
    connection.connect()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    head = (
        b'{"inputs":[{"name":"x","datatype":"FP32","shape":[4,1048576],"parameters":{"binary_data_size":16777216}}],'
        b'"parameters":{"binary_data_output":true}}'
    )
    connection.request(
        "POST", "/v2/models/wide/infer", head + bytes(1 << 24), {"Inference-Header-Content-Length": str(len(head))}
    )
    try:  # so much was not sent unless the server has read most of it
        mine = connection.sock.getsockname()[1]
        assert eventually(lambda: not held_by_server(impatient.http_port, mine)), "the connection is still there"
    finally:
        connection.close()


@pytest.mark.environment
@pytest.mark.parametrize("method", ["ModelStreamInfer", "ModelInfer", "ServerLive"])
def test_calls_that_send_nothing_are_closed(impatient: Server, method: str) -> None:
    over = threading.Event()

    def nothing() -> Iterator[bytes]:
        over.wait()
        yield from ()

    call = impatient.channel.stream_stream(f"/inference.GRPCInferenceService/{method}")
    held = [call(nothing(), timeout=PATIENCE) for _ in range(MOST)]
    try:
        for each in held:
            with pytest.raises(grpc.RpcError) as caught:
                list(each)
            assert caught.value.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)
            assert "has sent no message" in caught.value.details() or "oncurrent" in caught.value.details()
        assert eventually(lambda: not isinstance(impatient.call("ServerLive", pb.ServerLiveRequest()), grpc.RpcError))
    finally:
        over.set()


@pytest.mark.environment
def test_calls_whose_responses_nobody_reads_are_closed(tmp_path: Path) -> None:
    (tmp_path / "floor.tflite").write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    rows, over = message("floor", "x", "FP32", np.ones((4000, 4), np.float32)), threading.Event()

    def rest() -> Iterator[Any]:
        yield from [rows] * 20
        over.wait()

    with served(tmp_path, "--idle-seconds", 0.2, "--max-connections", 2) as server:
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options=[("grpc.http2.lookahead_bytes", 1 << 16)]) as channel:
            held = [GRPCInferenceServiceStub(channel).ModelStreamInfer(rest()) for _ in range(2)]
            full = server.call("ServerLive", pb.ServerLiveRequest())
            assert eventually(lambda: not isinstance(server.call("ServerLive", pb.ServerLiveRequest()), grpc.RpcError))
            assert held
            over.set()
        status, written = server.end()
        assert (status, "Traceback" in written, isinstance(full, grpc.RpcError) or full.live) == (0, False, True), written


@pytest.mark.environment
def test_methods_that_no_path_takes_are_one_metric(impatient: Server) -> None:
    for method in ("PROPFIND", "MKCOL", "PURGE", "LOCK", "REPORT", "SEARCH"):
        assert impatient.ask(method, "/v2/models/floor")[0] == 405
    told = impatient.ask("GET", "/metrics", port=impatient.metrics_port)[1].decode()
    assert 'method="GET"' in told or 'method="OTHER"' in told
    assert not any(f'method="{method}"' in told for method in ("PROPFIND", "MKCOL", "PURGE", "LOCK", "REPORT", "SEARCH"))


def test_a_call_that_is_cancelled_counts_until_its_thread_has_ended() -> None:
    go, runs = threading.Event(), threading.Event()

    def work(*arguments: Any) -> None:
        runs.set()
        go.wait()

    class Held:
        """What a request holds."""

    async def ask() -> None:
        queue = RequestQueue("cancelled", lambda values: dict(values), 1, 2, 1, 0.0)

        async def request(*arguments: Any) -> None:
            queue.enter()
            try:
                await queue.in_thread(work, *arguments)
            finally:
                queue.leave()

        first = asyncio.ensure_future(request())
        while not runs.is_set():
            await asyncio.sleep(0.001)
        held = Held()
        gone = weakref.ref(held)
        second = asyncio.ensure_future(request(held))
        await asyncio.sleep(0)
        del held
        for each in (first, second):
            each.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        del first, second, each
        await asyncio.sleep(0)
        gc.collect()
        assert gone() is None, "what waited for a thread is still held"
        assert queue.busy
        queue.enter()
        with pytest.raises(Refusal, match="2 requests under way"):
            queue.enter()
        queue.leave()
        go.set()
        while queue.busy:
            await asyncio.sleep(0.001)
        queue.close()

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))


def test_a_request_of_a_group_that_is_cancelled_counts_while_the_group_runs() -> None:
    go, runs = threading.Event(), threading.Event()

    def run(values: Any) -> dict[str, Any]:
        runs.set()
        go.wait()
        return {"y": values["x"]}

    async def ask() -> None:
        queue = RequestQueue("left", run, 1, 2, 4, 0.001)

        async def request() -> None:
            queue.enter()
            try:
                await queue.outputs({"x": np.zeros((1, 2))}, 1)
            finally:
                queue.leave()

        first = asyncio.ensure_future(request())
        while not runs.is_set():
            await asyncio.sleep(0.001)
        second = asyncio.ensure_future(request())  # which waits for the thread
        await asyncio.sleep(0.05)
        for each in (first, second):
            each.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        queue.enter()
        with pytest.raises(Refusal):
            queue.enter()
        queue.leave()
        go.set()
        while queue.busy:
            await asyncio.sleep(0.001)
        queue.close()

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))
