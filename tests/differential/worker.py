"""Runs models on LiteRT in a process of its own: LiteRT dies or hangs on some of them, which is an answer, not an accident.

As a program it is a server: it reads requests from stdin, runs each in a forked child and writes the answers to stdout.
What a bad model does to the heap is gone with the child, so that no case depends on the cases before it.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from tests.children import has_written

#: Memory that a child may ask for: a model of four tiny tensors needs none of it.
MEMORY_LIMIT = 6 << 30


class Answer(NamedTuple):
    """What an interpreter did with a case.

    Attributes:
        kind: "ran", "refused", "died" or "hung".
        outputs: one list of arrays for each step that ran.
        message: why it refused or how it died.
    """

    kind: str
    outputs: list[list[np.ndarray[Any, Any]]]
    message: str = ""


class Request(NamedTuple):
    """A model and what to feed it.

    Attributes:
        model: the bytes of a model.
        steps: one sequence of arrays per invoke; where a shape differs from the input's present one, it is resized.
        resolver: name of the OpResolverType.
        seconds: seconds of the processor that it may take.
    """

    model: bytes
    steps: Sequence[Sequence[np.ndarray[Any, Any]]]
    resolver: str
    seconds: float


def run_steps(interpreter: Any, model: bytes, steps: Sequence[Sequence[Any]], errors: Any, **arguments: Any) -> Answer:
    """Run a model on an interpreter class: one invoke per step; an exception among `errors` is a refusal."""

    def read(detail: dict[str, Any]) -> np.ndarray[Any, Any]:
        try:
            return np.asarray(runner.get_tensor(detail["index"]))
        except ValueError as error:
            # LiteRT gives dynamic tensors without elements no memory, and its Python API cannot read them.
            if "Invalid tensor size" in str(error) and not np.prod(detail["shape"]):
                return np.empty(detail["shape"], detail["dtype"])
            raise

    outputs: list[list[np.ndarray[Any, Any]]] = []
    try:
        runner = interpreter(model_content=model, **arguments)
        details = runner.get_input_details()
        shapes = [tuple(int(dim) for dim in detail["shape"]) for detail in details]
        for number, feeds in enumerate(steps):
            wanted = [np.shape(feed) for feed in feeds]
            if wanted != shapes or not number:
                for detail, shape, present in zip(details, wanted, shapes):
                    if shape != present:
                        runner.resize_tensor_input(detail["index"], shape)
                shapes = wanted
                runner.allocate_tensors()
            for detail, feed in zip(details, feeds):
                runner.set_tensor(detail["index"], feed)
            runner.invoke()
            outputs.append([read(detail) for detail in runner.get_output_details()])
    except errors as error:
        return Answer("refused", outputs, f"{type(error).__name__}: {error}")
    return Answer("ran", outputs)


def _child(request: Request) -> Answer:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = OpResolverType[request.resolver]
    return run_steps(Interpreter, request.model, request.steps, Exception, experimental_op_resolver_type=resolver)


def _limit_memory() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def forked(work: Callable[[], Any], seconds: float) -> tuple[str, Any]:
    """Do work in a forked child: "ran" and what it returned, or "died" or "hung" and how."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(reader)
            _limit_memory()
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(work(), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    received, hung = b"", False
    while True:
        if not has_written(reader, child, seconds):
            hung = True
            os.kill(child, 9)
            break
        piece = os.read(reader, 1 << 20)
        if not piece:
            break
        received += piece
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if hung:
        return "hung", f"no answer in {seconds} s"
    if status:
        return "died", f"wait status {status}"
    return "ran", pickle.loads(received)


def _serve_one(request: Request) -> Answer:
    kind, result = forked(lambda: _child(request), request.seconds)
    return result if kind == "ran" else Answer(kind, [], result)


def send(stream: BinaryIO, message: Any) -> None:
    """Write a message with its length before it."""
    body = pickle.dumps(message)
    stream.write(struct.pack("<q", len(body)) + body)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read a message; EOFError where there is none left."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError("the other side is gone")
    return pickle.loads(stream.read(struct.unpack("<q", head)[0]))


def serve(answer: Callable[[Any], Any]) -> None:
    """Answer requests from stdin on stdout until there are no more; what LiteRT logs goes nowhere."""
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    import ai_edge_litert.interpreter  # noqa: F401  # imported once, for all children

    try:
        while True:
            send(stdout, answer(receive(stdin)))
    except EOFError:
        sys.exit(0)


def main() -> None:
    """Serve until stdin ends."""
    serve(lambda fields: tuple(_serve_one(Request(*fields))))


if __name__ == "__main__":
    main()
