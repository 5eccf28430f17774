"""Twenty hostile clients beside an honest one; `python -m plugins.serve.tests.crowd SECONDS` prints what the honest one notices.
With `--aside` the hostile ones ask another process, that reads and refuses: what the honest one notices then is their load on the machine.

Each of the hostile clients does one thing again and again: large JSON, floods of names over HTTP and gRPC, half-sent headers, streams that send
nothing, methods that nobody has, calls and requests that are given up, texts of nothing but combining marks. They run in a process of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import random
import re
import socket
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub
from plugins.serve.tests.floods import REST, RPC, models
from plugins.serve.tests.serving import ROOT, Server, message, served

from oplet_testing import Spec, one_op_model

__all__ = ["CLIENTS", "Told", "crowd", "run"]

CLIENTS = 20
#: How the server is started: by the bounds that a server for strangers has.
BOUNDS = ("--workers", 2, "--max-seconds", 2, "--idle-seconds", 5)
#: Seconds that the honest client waits between two requests, and for one.
_PAUSE, _PATIENCE = 0.02, 60.0
#: Seconds after which what the clients left is gone: those of an idle connection, twice.
_AFTER = 20.0
#: Characters of a text, less than half a megabyte.
_MARKS = 240_000


class Told(NamedTuple):
    """What came of it.

    Attributes:
        alone: milliseconds of the honest client's requests at the 50th and 99th percentile, by itself.
        beside: the same beside the hostile ones.
        answers: its answers beside them.
        refused: how many of its requests beside them had no answer (a connection refused or lost, a status of 429 or 503).
        wrong: how many of its answers were wrong, at any time.
        before: MB of the server after the client was alone.
        peak: the most MB.
        after: MB of the server when all are gone.
        sent: what the hostile clients did, by kind.
        alive: whether the server answers in the end, and ends by itself with status 0 and without a traceback.
    """

    alone: tuple[float, float]
    beside: tuple[float, float]
    answers: int
    refused: int
    wrong: int
    before: int
    peak: int
    after: int
    sent: dict[str, int]
    alive: bool


def folder_of(folder: Path) -> Path:
    """Write the models that are asked, one of them for texts, into a folder, and return it."""
    text = Spec("object", [1])
    data = one_op_model("NormalizeUTF8", [text], [text], custom_options={"normalization_form": "NFC"})
    (folder / "marks.tflite").write_bytes(data)
    return models(folder)


# Hostile clients ---------------------------------------------------------------------------------------------


def _post(port: int, model: str, body: bytes, patience: float = _PATIENCE) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
    try:
        connection.request("POST", f"/v2/models/{model}/infer", body)
        connection.getresponse().read()
    finally:
        connection.close()


def _flood(port: int, name: str, model: str = "floor") -> Callable[[], None]:
    body = REST[name][1]()
    return lambda: _post(port, model, body)


def _rpc_flood(port: int, name: str) -> Callable[[], None]:
    body = RPC[name][1]()
    return lambda: _give_up(lambda: _channel(port).unary_unary(_INFER)(body, timeout=_PATIENCE))


_INFER = "/inference.GRPCInferenceService/ModelInfer"


def _channel(port: int) -> grpc.Channel:
    return grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])


def _give_up(call: Callable[[], Any]) -> None:
    with contextlib.suppress(grpc.RpcError):
        call()


def _half_sent(port: int) -> Callable[[], None]:
    def hold() -> None:
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)) for _ in range(8)]
            for each in held:
                each.sendall(b"POST /v2/models/floor/infer HTTP/1.1\r\nHost: x\r\nX-Half: ")
            for each in held:
                each.recv(100)

    return hold


def _idle_streams(port: int) -> Callable[[], None]:
    def hold() -> None:
        channel = _channel(port)
        ends = threading.Event()

        def nothing() -> Iterator[bytes]:
            ends.wait(_PATIENCE)
            yield from ()

        calls = [channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")(nothing()) for _ in range(8)]
        for call in calls:
            _give_up(lambda call=call: list(call))  # type: ignore[misc]
        ends.set()
        channel.close()

    return hold


def _methods(port: int) -> Callable[[], None]:
    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
        name = "".join(random.choices(string.ascii_uppercase, k=12))
        connection.request(name, f"/v2/models/{name.lower()}/infer")
        connection.getresponse().read()
        connection.close()

    return ask


def _cancelled_calls(port: int) -> Callable[[], None]:
    stub = GRPCInferenceServiceStub(_channel(port))
    large = message("free", "x", "FP32", np.ones((4096, 512), np.float32))

    def ask() -> None:
        futures = [stub.ModelInfer.future(large, timeout=_PATIENCE) for _ in range(4)]
        time.sleep(0.02)
        for future in futures:
            future.cancel()

    return ask


def _left_requests(port: int) -> Callable[[], None]:
    body = REST["numbers"][1]()[:1_000_000]

    def ask() -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE) as connection:
            head = b"POST /v2/models/floor/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 30000000\r\n\r\n"
            connection.sendall(head + body)

    return ask


def _marked(count: int) -> bytes:
    """A request with a text of so many combining marks."""
    marks = "".join(random.choices("\u0301\u0316\u0334", k=count))
    tensor = {"name": "input_0", "datatype": "BYTES", "shape": [1], "data": ["a" + marks]}
    return json.dumps({"inputs": [tensor]}, ensure_ascii=False).encode()


def _marks(port: int) -> Callable[[], None]:
    body = _marked(_MARKS)
    return lambda: _post(port, "marks", body)


#: Makers of what a hostile client does, given the ports of HTTP and gRPC.
KINDS: dict[str, Callable[[int, int], Callable[[], None]]] = {
    "large JSON": lambda rest, rpc: _flood(rest, "numbers"),
    "text among numbers": lambda rest, rpc: _flood(rest, "3 MB of text among numbers", "free"),
    "names of inputs": lambda rest, rpc: _flood(rest, "names of inputs"),
    "empty lists": lambda rest, rpc: _flood(rest, "empty lists"),
    "inputs over gRPC": lambda rest, rpc: _rpc_flood(rpc, "inputs"),
    "half-sent headers": lambda rest, rpc: _half_sent(rest),
    "idle streams": lambda rest, rpc: _idle_streams(rpc),
    "methods": lambda rest, rpc: _methods(rest),
    "cancelled calls": lambda rest, rpc: _cancelled_calls(rpc),
    "requests that are left": lambda rest, rpc: _left_requests(rest),
    "combining marks": lambda rest, rpc: _marks(rest),
}


def crowd(rest: int, rpc: int, seconds: float) -> None:
    """Be the hostile clients, and print as JSON how often each kind has had its way."""
    names = [list(KINDS)[number % len(KINDS)] for number in range(CLIENTS)]
    does = [KINDS[name](rest, rpc) for name in names]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    end = time.monotonic() + seconds
    counts: Counter[str] = Counter()

    def client(name: str, act: Callable[[], None]) -> None:
        while time.monotonic() < end:
            try:
                act()
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
            counts[name] += 1

    threads = [threading.Thread(target=client, args=each, daemon=True) for each in zip(names, does)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end + _AFTER - time.monotonic()))
    sys.stdout.write(json.dumps(counts) + "\n")


# The honest one ----------------------------------------------------------------------------------------------


def _honest(server: Server, seconds: float) -> tuple[list[float], int, int]:
    """Ask for so many seconds; the milliseconds of the answers, the requests without one, and the wrong answers."""
    rows = np.arange(20, dtype=np.float32).reshape(5, 4) + np.float32(0.5)
    times: list[float] = []
    refused = wrong = 0
    end, turn = time.monotonic() + seconds, 0
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=_PATIENCE)
    while time.monotonic() < end:
        turn = (turn + 1) % len(rows)
        row = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": rows[turn].tolist()}
        begun = time.perf_counter()
        try:
            connection.request("POST", "/v2/models/floor/infer", json.dumps({"inputs": [row]}).encode())
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            refused += 1
            connection.close()
            connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=_PATIENCE)
            continue
        if response.status in (429, 503):
            refused += 1
        elif response.status == 200:
            times.append(1000 * (time.perf_counter() - begun))
            wrong += json.loads(content)["outputs"][0]["data"] != np.floor(rows[turn]).tolist()
        else:
            wrong += 1
        time.sleep(_PAUSE)
    connection.close()
    return times, refused, wrong


def _memory(server: Server, what: str = "VmRSS:") -> int:
    return int(Path(f"/proc/{server.process.pid}/status").read_text().split(what)[1].split()[0]) >> 10


def _percentiles(times: list[float]) -> tuple[float, float]:
    if not times:
        return (float("inf"), float("inf"))
    return float(np.percentile(times, 50)), float(np.percentile(times, 99))


def sink() -> None:
    """Be a server that reads requests and refuses them; print its ports."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), BOUNDS[-1])
            left = int((re.search(rb"content-length: (\d+)", head.lower()) or [0, 0])[1])
            while left and (part := await reader.read(1 << 18)):
                left -= len(part)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    async def serve() -> None:
        rest = await asyncio.start_server(refuse, "127.0.0.1", 0)
        rpc = grpc.aio.server()
        port = rpc.add_insecure_port("127.0.0.1:0")
        await rpc.start()
        sys.stdout.write(f"{rest.sockets[0].getsockname()[1]} {port}\n")
        sys.stdout.flush()
        await rest.serve_forever()

    asyncio.run(serve())


@contextlib.contextmanager
def _sunk() -> Iterator[tuple[str, str]]:
    """The ports of such a server, a process of its own."""
    command = [sys.executable, "-m", "plugins.serve.tests.crowd", "--sink"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            rest, rpc = process.stdout.readline().split()
            yield rest, rpc
        finally:
            process.kill()


def run(folder: Path, seconds: float, *, aside: bool = False) -> Told:
    """Serve the models of a folder, and let the clients ask for so many seconds; `aside` sends the hostile ones to a process that refuses."""
    with contextlib.ExitStack() as stack, served(folder_of(folder), *BOUNDS) as server:
        assert server.ask("POST", "/v2/models/marks/infer", _marked(9))[0] == 200
        _honest(server, min(2.0, seconds))
        alone, _, wrong = _honest(server, max(2.0, seconds / 4))
        before = _memory(server)
        ports = stack.enter_context(_sunk()) if aside else (server.http_port, server.grpc_port)
        command = [sys.executable, "-m", "plugins.serve.tests.crowd", "--hostile", *ports, seconds]
        with subprocess.Popen(
            [*map(str, command)], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as hostile:
            assert hostile.stdin is not None
            assert hostile.stdout is not None
            assert hostile.stdout.readline() == "ready\n"
            hostile.stdin.write("\n")
            hostile.stdin.flush()
            beside, refused, more = _honest(server, seconds)
            sent = json.loads(hostile.stdout.readline())
        peak = _memory(server, "VmHWM:")
        time.sleep(_AFTER)
        _, still_refused, last = _honest(server, 1.0)
        after = _memory(server)
        status, written = server.end()
    alive = status == 0 and not still_refused and "Traceback" not in written
    return Told(
        _percentiles(alone), _percentiles(beside), len(beside), refused, wrong + more + last, before, peak, after, sent, alive
    )


def main() -> None:
    """Print what came of it."""
    if sys.argv[1:2] == ["--hostile"]:
        crowd(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
        return
    if sys.argv[1:2] == ["--sink"]:
        sink()
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    with tempfile.TemporaryDirectory() as folder:
        told = run(Path(folder), seconds, aside="--aside" in sys.argv)
    for name, value in told._asdict().items():
        sys.stdout.write(f"{name}: {value}\n")
    sys.stdout.write(f"p99 beside, in times of p99 alone: {told.beside[1] / told.alone[1]:.1f}\n")


if __name__ == "__main__":
    main()
