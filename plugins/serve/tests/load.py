"""Load at saturation: how many answers, how fast, and whether all are right; `python -m plugins.serve.tests.load MODEL SECONDS` prints it."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceStub
from plugins.serve.tests.serving import Server, message, served
from tests.children import LONG

from oplet import Interpreter, Predictor

CONNECTIONS = 16


def saturate(server: Server, name: str, model: Path, seconds: float, kind: str) -> dict[str, float]:
    """Ask from 16 connections at once; the counts of answers, wrong ones and failures, and seconds at the 50th and 99th percentile.

    Args:
        kind: "json", "binary" (over HTTP) or "grpc".
    """
    predict = Predictor(model)
    [[tensor, column]] = predict.inputs.items()
    random = np.random.default_rng(0)
    if column.dtype.kind == "f":
        rows = random.random((8, *column.shape), np.float32)
    else:
        rows = random.integers(0, 127, (8, *column.shape)).astype(column.dtype)
    [wanted] = predict(rows).values()
    datatype = {"float32": "FP32", "int8": "INT8", "uint8": "UINT8"}[column.dtype.name]
    requests = [_request(kind, name, tensor, datatype, row[np.newaxis]) for row in rows]
    times: list[float] = []
    wrong, failed = [0], [0]
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        ask = _client(server, kind, name)
        turn = number
        while time.monotonic() < end:
            turn = (turn + 1) % len(rows)
            begun = time.perf_counter()
            try:
                found = ask(requests[turn], wanted.dtype)
            except Exception:
                failed[0] += 1
                continue
            times.append(time.perf_counter() - begun)
            if not np.array_equal(found, wanted[turn].reshape(-1)):
                wrong[0] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = {"answers": len(times), "wrong": wrong[0], "failed": failed[0], "per_second": len(times) / seconds}
    return told | {f"p{part}_ms": float(np.percentile(times, part)) * 1000 for part in (50, 99)}


def _request(kind: str, name: str, tensor: str, datatype: str, row: np.ndarray) -> Any:
    if kind == "grpc":
        return message(name, tensor, datatype, row)
    told: dict[str, Any] = {"name": tensor, "datatype": datatype, "shape": row.shape}
    if kind == "json":
        return json.dumps({"inputs": [told | {"data": row.reshape(-1).tolist()}]}).encode(), {}
    told["parameters"] = {"binary_data_size": row.nbytes}
    text = json.dumps({"inputs": [told], "parameters": {"binary_data_output": True}}).encode()
    return text + row.tobytes(), {"Inference-Header-Content-Length": str(len(text))}


def _client(server: Server, kind: str, name: str) -> Any:
    if kind == "grpc":
        channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options=[("grpc.use_local_subchannel_pool", 1)])
        stub = GRPCInferenceServiceStub(channel)

        def ask_rpc(request: Any, dtype: Any) -> np.ndarray:
            return np.frombuffer(stub.ModelInfer(request, timeout=LONG).raw_output_contents[0], dtype)

        return ask_rpc
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=LONG)

    def ask(request: tuple[bytes, dict[str, str]], dtype: Any) -> np.ndarray:
        connection.request("POST", f"/v2/models/{name}/infer", *request)
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise ConnectionError(response.status)
        length = response.getheader("inference-header-content-length")
        if length is None:
            return np.array(json.loads(content)["outputs"][0]["data"], dtype)
        return np.frombuffer(content[int(length) :], dtype)

    return ask


def bare(model: Path, seconds: float) -> dict[str, float]:
    """An Interpreter in a loop: invocations a second, and seconds at the percentiles."""
    interpreter = Interpreter(str(model))
    interpreter.allocate_tensors()
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.perf_counter()
        interpreter.invoke()
        times.append(time.perf_counter() - begun)
    return {"per_second": len(times) / seconds} | {f"p{part}_ms": float(np.percentile(times, part)) * 1000 for part in (50, 99)}


def measure(model: Path, seconds: float) -> None:
    """Write the figures of a model."""
    sys.stdout.write(f"bare {bare(model, min(seconds, 10))}\n")
    with served(model) as server:
        for kind in ("grpc", "binary", "json"):
            sys.stdout.write(f"{kind} {saturate(server, model.stem, model, seconds, kind)}\n")
            sys.stdout.flush()
        sys.stdout.write(f"status after SIGTERM: {server.end()[0]}\n")


if __name__ == "__main__":
    measure(Path(sys.argv[1]), float(sys.argv[2]))
