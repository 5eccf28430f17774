"""Requests that are small for what they would make; `python -m plugins.serve.tests.floods` prints what each takes of a server."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from mlserver.grpc import dataplane_pb2 as pb
from plugins.serve.tests.models import mirror
from plugins.serve.tests.serving import Server, served
from tests.children import LONG

__all__ = ["CODES", "REST", "RPC", "Flood", "models"]

#: A model, the body or message for it, the status that it gets, and what that one says.
Flood = tuple[str, Callable[[], bytes], int, str]
#: Little less than the 32 MiB that are allowed.
_MOST = 33_000_000


def models(folder: Path) -> Path:
    """Write the models that are asked: rows of four, sizes that are free, and text."""
    (folder / "floor.tflite").write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    (folder / "free.tflite").write_bytes(mirror(np.float32, [1, 1], [-1, -1]))
    (folder / "whole.tflite").write_bytes(mirror(np.int64, [1, 1], [-1, -1], op="RESHAPE"))
    (folder / "text.tflite").write_bytes(mirror(object, [1, 4], op="RESHAPE"))
    return folder


def _json(data: bytes, shape: bytes = b"[1,4]", datatype: bytes = b"FP32", more: bytes = b"") -> bytes:
    tensor = b'{"name":"x","datatype":"%s","shape":%s,"data":%s%s}' % (datatype, shape, data, more)
    return b'{"inputs":[' + tensor + b"]}"


def _many(each: bytes) -> bytes:
    return b"[" + b",".join([each] * (_MOST // (len(each) + 1))) + b"]"


def _mixed(numbers: int, letters: int) -> bytes:
    return _json(b'["%s"%s]' % (b"a" * letters, b",0" * numbers), b"[1,%d]" % (numbers + 1))


GOOD = b'{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]%s}'

REST: dict[str, Flood] = {
    "long text among numbers": ("free", lambda: _mixed(2_937, 403_000), 400, "an element is not a number"),
    "3 MB of text among numbers": ("free", lambda: _mixed(400_000, 2_200_000), 400, "an element is not a number"),
    "text among numbers, small": ("free", lambda: _mixed(10_000, 40_000), 400, "an element is not a number"),
    "names of inputs": ("free", lambda: b'{"inputs":%s}' % _many(b'{"name":""}'), 400, "values beside"),
    "names of outputs": (
        "free",
        lambda: b'{"inputs":[%s],"outputs":%s}' % (GOOD % b"", _many(b'{"name":"y"}')),
        400,
        "values beside",
    ),
    "names of outputs, few": (
        "free",
        lambda: b'{"inputs":[%s],"outputs":[{"name":"y"},{"name":"y"}]}' % (GOOD % b""),
        400,
        "has 2 outputs, and the model has 1",
    ),
    "inputs that are numbers": ("free", lambda: b'{"inputs":%s}' % _many(b"0"), 400, "values beside"),
    "parameters": (
        "free",
        lambda: b'{"inputs":[%s]}' % (GOOD % b',"parameters":{"a":%s}' % _many(b"{}")),
        400,
        "values beside",
    ),
    "empty lists": ("free", lambda: _json(_many(b"[]")), 400, "are nested in"),
    "empty lists of their own shape": ("free", lambda: _json(_many(b"[]"), b"[11000000,1]"), 400, "an element is missing"),
    "empty lists as shape": ("free", lambda: _json(b"[1,2,3,4]", _many(b"[]")), 400, "values beside"),
    "empty lists as id": ("free", lambda: b'{"id":%s,"inputs":[]}' % _many(b"[]"), 400, "The request has"),
    "objects as elements": ("free", lambda: _json(_many(b"{}")), 400, "an element is a JSON object"),
    "depth": ("free", lambda: _json(b"[" * 16_000_000 + b"]" * 16_000_000), 400, "are nested in"),
    "members given twice": ("free", lambda: _json(b"[1,2,3,4]", more=b',"data":' + _many(b"[]")), 400, "a member twice"),
    "members given twice, and other ones": (
        "free",
        lambda: _json(_many(b"[]"), more=b',"data":[1,2,3,4]'),
        400,
        "has a member twice",
    ),
    "numbers": ("free", lambda: _json(_many(b"0")), 400, "elements were given, but the shape [1, 4] has 4"),
    "texts": ("text", lambda: _json(_many(b'"ab"'), datatype=b"BYTES"), 400, "elements were given, but the shape [1, 4] has 4"),
    "brackets in texts": ("free", lambda: b'{"id":"%s","inputs":7}' % (b'[{\\\\\\",' * 3_000_000), 400, "no 'inputs'"),
    "a shape of nothing": ("free", lambda: _json(b"[]", b"[0,%d]" % (1 << 62)), 413, "bytes, and one may have"),
    "lists of one": ("free", lambda: _json(_many(b"[1]"), b"[8250000,1]"), 413, "rows, and one may have 4096"),
    "more than the model can take": ("floor", lambda: _json(_many(b"0")), 413, "the most that this server takes for this model"),
    "half of an object": ("free", lambda: b'{"inputs":' + b'[{"name":"",' * 2_000_000, 400, "The request"),
}


def _message(model: str, *fields: tuple[int, bytes], datatype: str = "FP32", shape: tuple[int, ...] = (1, 4)) -> bytes:
    """A message with an input of more bytes than a builder would make."""
    tensor = pb.ModelInferRequest.InferInputTensor(name="x", datatype=datatype, shape=shape).SerializeToString()
    tensor += b"".join(_field(number, value) for number, value in fields)
    start: bytes = pb.ModelInferRequest(model_name=model).SerializeToString()
    return start + _field(5, tensor)


def _field(number: int, value: bytes) -> bytes:
    length, size = len(value), b""
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + value


def _repeated(number: int) -> bytes:
    start: bytes = pb.ModelInferRequest(model_name="free").SerializeToString()
    return start + _field(number, b"") * 6_000_000


RPC: dict[str, Flood] = {
    "inputs": ("free", lambda: _repeated(5), 400, "a message has more than"),
    "outputs": ("free", lambda: _repeated(6), 400, "a message has more than"),
    "raw contents": ("free", lambda: _repeated(7), 400, "a message has more than"),
    "parameters": ("free", lambda: _repeated(4), 400, "a message has more than"),
    "a thousand inputs": (
        "free",
        lambda: pb.ModelInferRequest(model_name="free").SerializeToString() + _field(5, b"") * 1000,
        400,
        "has 1000 inputs, and the model has 1",
    ),
    "parameters of an input": ("free", lambda: _message("free", *[(4, b"")] * 6_000_000), 400, "a message has more than"),
    "sizes": ("free", lambda: _message("free", (3, b"\1" * 30_000_000)), 400, "more than 32 sizes"),
    "texts": (
        "text",
        lambda: _message("text", (5, _field(8, b"") * 15_000_000), datatype="BYTES"),
        400,
        "the shape [1, 4] has 4",
    ),
    "whole numbers": (
        "whole",
        lambda: _message("whole", (5, _field(3, b"\1" * 30_000_000)), datatype="INT64"),
        400,
        "30000000 elements and more were given",
    ),
    "whole numbers of another type": (
        "free",
        lambda: _message("free", (5, _field(3, b"\1" * 30_000_000))),
        400,
        "30000000 elements",
    ),
    "whole numbers of a shape that the input lacks": (
        "free",
        lambda: _message("free", (5, _field(3, b"\1" * 30_000_000)), shape=(3, 10_000_000, 1)),
        400,
        "but it takes [-1, -1]",
    ),
    "more than the model can take": (
        "floor",
        lambda: _message("floor", (5, _field(3, b"\1" * 30_000_000))),
        413,
        "the most that this model takes",
    ),
}

#: Statuses over gRPC.
CODES = {400: "INVALID_ARGUMENT", 413: "RESOURCE_EXHAUSTED"}


def ask_rest(server: Server, flood: Flood) -> tuple[int, Any]:
    """The status and the message of a response."""
    status, told = server.ask("POST", f"/v2/models/{flood[0]}/infer", flood[1]())
    return status, told["error"] if isinstance(told, dict) else told


def ask_rpc(server: Server, flood: Flood) -> tuple[str, str]:
    """The status and the message of a response."""
    try:
        server.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(flood[1](), timeout=LONG)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    return "OK", ""


def _peak(server: Server) -> int:
    """The most MB that it had since the last call."""
    told = Path(f"/proc/{server.process.pid}/status").read_text()
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
    return int(told.split("VmHWM:")[1].split()[0]) >> 10


def main() -> None:
    """Write what each takes, each of a server of its own with 6 GB of address space."""
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as made:
        folder = models(Path(made))
        for kind, floods, ask in (("REST", REST, ask_rest), ("gRPC", RPC, ask_rpc)):
            for name, flood in floods.items():
                if wanted and name not in wanted:
                    continue
                with served(folder, "--max-request-bytes", 32 << 20, space=6 << 30) as server:
                    before = _peak(server)
                    begun = time.monotonic()
                    try:
                        status, told = ask(server, flood)
                    except OSError as error:
                        status, told = "none", str(error)
                    took = time.monotonic() - begun
                    after = _peak(server) if server.process.poll() is None else -1
                sys.stdout.write(f"{kind} {name}: {took:.1f} s, {before} to {after} MB, {status} {str(told)[:90]}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
