"""The bytes of all requests under way: bounded together, and given back."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest
from plugins.serve.tests.models import mirror
from plugins.serve.tests.serving import message, served
from tests.children import LONG

from oplet_serve.doors.bounds import Bodies, Bounds, Share
from oplet_serve.doors.rest import rest_application
from oplet_serve.doors.threads import WorkerThreads
from oplet_serve.options import Options
from oplet_serve.refusals import Refusal
from oplet_serve.served_model import ServedModel
from oplet_serve.values.slices import SMALL, SMALL_FIRST


def test_a_share_is_given_back_however_its_request_ends() -> None:
    bodies = Bodies(10)
    with Share(bodies) as first:
        first.add(4)
        with Share(bodies) as second:
            second.add(5)
            with pytest.raises(Refusal, match="have 9 bytes, and may have 10") as caught:
                second.add(2)
        assert (caught.value.status_code, bodies.held) == (413, 4)
        first.add(6)
    assert bodies.held == 0


@pytest.mark.parametrize("ends", [True, False])
def test_a_large_body_waits_for_small_requests_but_not_for_ever(monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    async def order() -> list[str]:
        bodies, done = Bodies(1), []

        async def large() -> None:
            await bodies.turn()
            done.append("large")

        with SMALL_FIRST:
            waiting = asyncio.ensure_future(large())
            for _ in range(10):
                await asyncio.sleep(0.001)
            done.append("small")
            if not ends:
                await asyncio.wait_for(waiting, LONG)
        await asyncio.wait_for(waiting, LONG)
        return done

    monkeypatch.setattr("oplet_serve.doors.bounds._LOOKS", 1_000_000 if ends else 2)
    assert asyncio.run(order()) == (["small", "large"] if ends else ["large", "small"])


def _answer(bounds: Bounds, bodies: Bodies, length: int, most: int) -> tuple[int, Any]:
    """The status and JSON that a request of so many bytes gets, of which none comes, from a model that takes `most`."""

    async def model(name: str, version: str | None) -> Any:
        return SimpleNamespace(served=lambda: SimpleNamespace(most_bytes=most))

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    sent: list[Any] = []
    threads = WorkerThreads(1, "unread")
    registry: Any = SimpleNamespace(get_model=model)
    data_plane: Any = None
    app = rest_application(data_plane, registry, bounds, bodies, threads)
    path, headers = "/v2/models/floor/infer", [(b"content-length", b"%d" % length)]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": headers, "query_string": b""}
    asyncio.run(asyncio.wait_for(app(scope, receive, send), LONG))
    threads.close()
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_body_that_does_not_come_is_given_up() -> None:
    bodies = Bodies(1 << 20)
    status, told = _answer(Bounds(read_seconds=0.01), bodies, 100, 1000)
    assert (status, told) == (408, {"error": "The request's body did not come within 0.01 s."})
    assert bodies.held == 0


@pytest.mark.parametrize("length", [SMALL, SMALL + 1])
def test_a_large_request_waits_for_its_turn_before_it_is_looked_at(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    bodies = Bodies(1 << 20)
    turns: list[int] = []

    async def turn() -> None:
        turns.append(bodies.held)

    monkeypatch.setattr(bodies, "turn", turn)
    status, told = _answer(Bounds(), bodies, length, 1000)
    assert (status, "larger than 1000 bytes" in told["error"]) == (413, True)
    assert len(turns) == (length > SMALL)


@pytest.mark.environment
def test_malformed_requests_without_end_leave_a_server_whose_log_nobody_reads_and_large_messages_are_refused(
    tmp_path: Path,
) -> None:
    (tmp_path / "floor.tflite").write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1.5] * 4}
    with served(tmp_path) as server:
        for _ in range(2000):  # of a line each in the log a pipe would not take as many
            with socket.create_connection(("127.0.0.1", server.http_port), LONG) as connection:
                connection.sendall(b"NONSENSE / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert connection.recv(100)
        assert server.infer("floor", inputs=[tensor])[0] == 200
        error = server.call("ModelInfer", message("floor", "x", "FP32", np.ones((300_000, 4), np.float32)))
        assert (error.code().name, "larger than max" in error.details()) == ("RESOURCE_EXHAUSTED", True)


@pytest.mark.environment
def test_bodies_that_come_leave_no_room_for_others_until_they_are_gone(tmp_path: Path) -> None:
    (tmp_path / "floor.tflite").write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    tensor = {"name": "x", "datatype": "FP32", "shape": [800, 4], "data": [1.5] * 3200}
    rows = message("floor", "x", "FP32", np.ones((1000, 4), np.float32))
    head = b"POST /v2/models/floor/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n"
    with served(tmp_path, "--max-request-bytes", 20_000, "--max-bodies-bytes", 30_000) as server:
        assert server.infer("floor", inputs=[tensor])[0] == 200
        with socket.create_connection(("127.0.0.1", server.http_port)) as slow:
            slow.sendall(head + b" " * 19_000)
            end = time.monotonic() + LONG
            while (answer := server.infer("floor", inputs=[tensor]))[0] == 200 and time.monotonic() < end:
                time.sleep(0.05)
            assert answer[0] == 413
            assert "All requests under way have" in answer[1]["error"]
            error = server.call("ModelInfer", rows)
            assert isinstance(error, grpc.RpcError)
            assert (error.code().name, "under way" in error.details()) == ("RESOURCE_EXHAUSTED", True)
        while (answer := server.infer("floor", inputs=[tensor]))[0] != 200 and time.monotonic() < end:
            time.sleep(0.05)
        assert answer[0] == 200
        assert server.call("ModelInfer", rows).model_name == "floor"


@pytest.mark.environment
def test_responses_count_until_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "wide.tflite").write_bytes(mirror(np.float32, [1, 1 << 20], [-1, 1 << 20]))
    head = (
        b'{"inputs":[{"name":"x","datatype":"FP32","shape":[3,1048576],"parameters":{"binary_data_size":12582912}}],'
        b'"parameters":{"binary_data_output":true}}'
    )
    headers = {"Inference-Header-Content-Length": str(len(head))}
    body = head + bytes(12 << 20)
    with served(tmp_path, "--max-bodies-bytes", 32 << 20) as server, contextlib.ExitStack() as stack:
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=LONG)
            stack.callback(connection.close)
            connection.connect()
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
            connection.request("POST", "/v2/models/wide/infer", body, headers)
            assert connection.getresponse().status == 200
        status, told = server.ask("POST", "/v2/models/wide/infer", body, headers)
        assert (status, "All requests under way have" in told["error"]) == (413, True)
        stack.close()
        end = time.monotonic() + LONG
        while server.ask("POST", "/v2/models/wide/infer", body, headers)[0] != 200:
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.mark.parametrize("indent", [None, 8])
def test_a_models_largest_request_has_room_however_it_is_written(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "floor.tflite").write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    model = ServedModel(str(tmp_path / "floor.tflite"), Options(max_rows=50))
    data = np.full((50, 4), np.finfo(np.float32).min, float).tolist()
    tensor = {"name": "x", "datatype": "FP32", "shape": [50, 4], "data": data}
    assert len(json.dumps({"id": "a" * 1000, "inputs": [tensor]}, indent=indent)) < model.most_bytes < 200_000
    model.close()


@pytest.mark.parametrize("made", [mirror(np.float32, [1, 1], [-1, -1]), mirror(object, [1, 4], op="RESHAPE")])
def test_sizes_that_are_free_and_texts_bound_no_request(tmp_path: Path, made: bytes) -> None:
    (tmp_path / "m.tflite").write_bytes(made)
    model = ServedModel(str(tmp_path / "m.tflite"), Options())
    assert model.most_bytes > 1 << 60
    model.close()
