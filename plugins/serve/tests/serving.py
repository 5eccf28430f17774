"""Servers and clients for the tests: `oplet-serve` as a process on loopback, asked over HTTP and gRPC."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from mlserver.grpc import dataplane_pb2 as pb
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub
from tests.children import LONG

ROOT = Path(__file__).parents[3]
DIGITS = ROOT / "examples" / "digits"


def free_ports(count: int = 3) -> list[int]:
    """Ports that nobody listens to now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


#: A program that limits its address space once what it imports is there.
LIMITED = """
import resource
import oplet_serve.runtime, oplet_serve.server
from oplet_serve.command import main

with open("/proc/self/statm") as told:
    space = {} + resource.getpagesize() * int(told.read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (space, space))
main()
"""


class Server:
    """A server that runs."""

    def __init__(self, command: list[str], http_port: int, grpc_port: int, metrics_port: int, folder: Path | None = None) -> None:
        self.http_port, self.grpc_port, self.metrics_port = http_port, grpc_port, metrics_port
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, env=environment
        )
        self.channel = grpc.insecure_channel(f"127.0.0.1:{grpc_port}", options=[("grpc.max_receive_message_length", -1)])
        self.stub = GRPCInferenceServiceStub(self.channel)
        end = time.monotonic() + LONG
        while True:
            with contextlib.suppress(OSError):
                if self.ask("GET", "/v2/health/ready")[0] == 200:
                    break
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                raise AssertionError(f"the server did not start: {self.process.communicate()[0]}")
            time.sleep(0.05)

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, port: int | None = None
    ) -> tuple[int, Any]:
        """The status and the JSON (else the bytes) of a response; `body` is sent as JSON unless it is bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.http_port, timeout=LONG)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
                connection.request(method, path, data, headers or {})
            response = connection.getresponse()
            content = response.read()
            self.headers = dict(response.getheaders())
            with contextlib.suppress(ValueError):
                return response.status, json.loads(content)
            return response.status, content
        finally:
            connection.close()

    def infer(self, model: str, **request: Any) -> tuple[int, Any]:
        """The response of a model."""
        return self.ask("POST", f"/v2/models/{model}/infer", request)

    def call(self, method: str, message: Any) -> Any:
        """The response over gRPC, or the error."""
        try:
            return getattr(self.stub, method)(message, timeout=LONG)
        except grpc.RpcError as error:
            return error

    def end(self, how: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit status and what it wrote."""
        self.process.send_signal(how)
        written, _ = self.process.communicate(timeout=LONG)
        self.channel.close()
        return self.process.returncode, written


@contextlib.contextmanager
def served(*arguments: object, space: int | None = None) -> Iterator[Server]:
    """A server of `oplet-serve ARGUMENTS`; with `space` it may have that many bytes beyond what it has after its imports."""
    http_port, grpc_port, metrics_port = free_ports()
    ports = ["--http-port", http_port, "--grpc-port", grpc_port, "--metrics-port", metrics_port]
    start = [sys.executable, "-c", "from oplet_serve.command import main; main()" if space is None else LIMITED.format(space)]
    server = Server([*start, *map(str, (*arguments, *ports))], http_port, grpc_port, metrics_port)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def message(model: str, name: str, datatype: str, array: np.ndarray, raw: bool = True, version: str = "") -> Any:
    """A request over gRPC with one input."""
    made = pb.ModelInferRequest(model_name=model, model_version=version)
    tensor = made.inputs.add(name=name, datatype=datatype, shape=array.shape)
    if raw:
        made.raw_input_contents.append(array.tobytes())
    else:
        fields = {"INT8": "int_contents", "FP32": "fp32_contents", "INT32": "int_contents"}
        getattr(tensor.contents, fields[datatype]).extend(array.reshape(-1).tolist())
    return made
