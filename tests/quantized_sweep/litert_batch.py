"""Runs many models on LiteRT, in children that may die: a server that answers batches of requests.

As a program it reads pickled batches from stdin and writes pickled lists of answers to stdout.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.children import has_written
from tests.differential.worker import Answer, receive, run_steps, send

#: Seconds of the processor that one model may take.
PATIENCE = 20.0


def _answer(model: bytes, steps: Sequence[Sequence[Any]], resolver: str) -> Answer:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    return run_steps(Interpreter, model, steps, Exception, experimental_op_resolver_type=OpResolverType[resolver])


def _run_until_death(batch: Sequence[tuple[Any, ...]]) -> list[Answer]:
    """The answers to the first requests of a batch, up to the one that the child did not survive."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            for request in batch:
                send(pipe, tuple(_answer(*request)))
        os._exit(0)
    os.close(writer)
    answers: list[Answer] = []
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while len(answers) < len(batch):
            if not has_written(pipe, child, PATIENCE):
                os.kill(child, 9)
                answers.append(Answer("hung", [], f"no answer in {PATIENCE} s"))
                break
            try:
                answers.append(Answer(*receive(_Whole(pipe))))
            except (EOFError, pickle.UnpicklingError):
                answers.append(Answer("died", []))
                break
    os.waitpid(child, 0)
    return answers


class _Whole:
    """Reads as much as is asked for from a pipe that gives it in pieces."""

    def __init__(self, pipe: Any) -> None:
        self.pipe = pipe

    def read(self, count: int) -> bytes:
        pieces = b""
        while len(pieces) < count:
            piece = self.pipe.read(count - len(pieces))
            if not piece:
                break
            pieces += piece
        return pieces


def run_batch(batch: Sequence[tuple[Any, ...]]) -> list[Answer]:
    """The answers to all requests."""
    answers: list[Answer] = []
    while len(answers) < len(batch):
        answers += _run_until_death(batch[len(answers) :])
    return answers


def main() -> None:
    """Serve until stdin ends."""
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # LiteRT logs each refusal
        os.dup2(nowhere, stream)
    import resource

    import ai_edge_litert.interpreter  # noqa: F401  # imported once, for all children

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        while True:
            send(stdout, [tuple(answer) for answer in run_batch(receive(stdin))])
    except EOFError:
        sys.exit(0)


if __name__ == "__main__":
    main()
