"""What LiteRT answers in each of its three ways, in child processes: LiteRT dies of some models, which is an answer too."""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.children import run_child
from tests.differential.worker import Answer, run_steps

#: The reference kernels, the optimized ones, and the default with XNNPACK.
WAYS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")
#: Seconds of the processor that LiteRT may take for a model.
_SECONDS = 20

Asked = tuple[bytes, list[np.ndarray[Any, Any]]]


def ask(cases: Sequence[Asked], ways: Sequence[str] = WAYS) -> list[dict[str, Answer]]:
    """What LiteRT does with models and what they are fed, one dictionary of ways for each."""
    work = [(model, feeds, way) for model, feeds in cases for way in ways]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = run_child([sys.executable, "-m", "tests.everywhere.ways"], input=pickle.dumps(work), env=environment, text=False)
    answers: list[Answer] = [Answer(*fields) for fields in pickle.loads(done.stdout)]
    step = len(ways)
    return [dict(zip(ways, answers[i * step : (i + 1) * step])) for i in range(len(cases))]


def _run(model: bytes, feeds: list[Any], way: str) -> Answer:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    return run_steps(Interpreter, model, [feeds], Exception, experimental_op_resolver_type=OpResolverType[way])


def _child(work: Sequence[tuple[bytes, list[Any], str]], pipe: Any) -> None:
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for item in work:
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        try:
            fields = tuple(_run(*item))
            body = pickle.dumps(fields)
        except BaseException as error:
            body = pickle.dumps(("refused", [], f"{type(error).__name__}: {error}"))
        pipe.write(struct.pack("<q", len(body)) + body)
        pipe.flush()


def _answers(work: Sequence[tuple[bytes, list[Any], str]]) -> Iterator[tuple[Any, ...]]:
    """The answers one by one; where a child dies, another goes on behind what it died of."""
    place = 0
    while place < len(work):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            try:
                with os.fdopen(writer, "wb") as pipe:
                    _child(work[place : place + 200], pipe)
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            while len(head := pipe.read(8)) == 8:
                body = pipe.read(struct.unpack("<q", head)[0])
                yield pickle.loads(body)
                place += 1
        status = os.waitpid(child, 0)[1]
        if status:
            yield ("died", [], f"wait status {status}")
            place += 1


def main() -> None:
    """Answer what is asked on stdin."""
    work = pickle.load(sys.stdin.buffer)
    stdout = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    import ai_edge_litert.interpreter  # noqa: F401  # imported once, for all children

    pickle.dump(list(_answers(work)), stdout)
    stdout.flush()


if __name__ == "__main__":
    main()
