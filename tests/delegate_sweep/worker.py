"""Runs drafts in children that may die.

As a program, it is a child's parent: it reads one pickled job from standard input, forks, and writes each verdict to standard output as
it comes; where a child dies or hangs, it says so in its place and goes on behind.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import resource
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.children import has_written
from tests.delegate_sweep.examine import Verdict, examine

__all__ = ["Job", "run"]

_PLACE = struct.Struct("<q32s")
#: Seconds of the processor that one model may take.
PATIENCE = 10.0
#: Models after which a child is replaced.
_LIFE = 150
_ADDRESS_SPACE = 6 << 30
#: More growth than this while one model runs is a finding: the limits allow 128 MB.
_GROWTH = 300 << 20


class Job(NamedTuple):
    """What a worker is to do.

    Attributes:
        models: names and bytes.
        delegate: through which, and with what options.
        every_way: ask LiteRT by itself about each model, too.
    """

    models: Sequence[tuple[str, bytes]]
    delegate: str
    options: dict[str, Any]
    every_way: bool = False


def run(job: Job) -> list[Verdict]:
    """The verdicts on all models of a job, found in another process."""
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root, "OPLET_DISABLE_PLUGINS": "oplet-compiled-ops"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.delegate_sweep.worker"], input=pickle.dumps(tuple(job)), stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=environment, check=True,
    )  # fmt: skip
    return [Verdict(*fields) for fields in pickle.loads(done.stdout)]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _child(job: Job, first: int, page: mmap.mmap, pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(first, min(first + _LIFE, len(job.models))):
        name, model = job.models[number]
        before = _peak()

        def at(stage: str, number: int = number) -> None:
            _PLACE.pack_into(page, 0, number, stage.encode())

        verdict = examine(model, name, job.delegate, job.options, at, every_way=job.every_way)
        if (grown := _peak() - before) > _GROWTH and not job.every_way:
            verdict = Verdict("grew", f"{grown >> 20} MB, {verdict.kind}: {verdict.text}")
        body = pickle.dumps(tuple(verdict))
        pipe.write(struct.pack("<q", len(body)) + body)
        pipe.flush()


def _verdicts(job: Job) -> Iterator[Verdict]:
    page = mmap.mmap(-1, _PLACE.size)
    place = 0
    while place < len(job.models):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            status = 1
            try:
                os.close(reader)
                with os.fdopen(writer, "wb") as pipe:
                    _child(job, place, page, pipe)
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            while True:
                ready, patience = False, PATIENCE
                # oplet's own kernels have limits of their own, and LiteRT by itself is not on trial.
                while not ready and patience > 0:
                    ready = has_written(pipe, child, PATIENCE)
                    patience -= PATIENCE if _stage(page) == "delegate" else PATIENCE / 5
                if not ready:
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                    yield Verdict("hung", _stage(page))
                    place += 1
                    break
                head = pipe.read(8)
                if len(head) < 8:
                    status = os.waitpid(child, 0)[1]
                    if status:
                        yield Verdict("died", f"{_stage(page)} of {_told(status)}")
                        place += 1
                    break
                yield Verdict(*pickle.loads(_exactly(pipe, struct.unpack("<q", head)[0])))
                place += 1


def _stage(page: mmap.mmap) -> str:
    return bytes(_PLACE.unpack_from(page, 0)[1]).rstrip(b"\0").decode()


def _told(status: int) -> str:
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.waitstatus_to_exitcode(status)}"


def _exactly(pipe: Any, count: int) -> bytes:
    pieces = b""
    while len(pieces) < count and (piece := pipe.read(count - len(pieces))):
        pieces += piece
    return pieces


def main() -> None:
    """Answer the job on standard input."""
    job = Job(*pickle.load(sys.stdin.buffer))
    stdout = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    from oplet import load_delegate

    load_delegate(job.delegate, job.options)  # imported once, for all children
    if job.delegate == "litert" or job.every_way:
        import ai_edge_litert.interpreter  # noqa: F401
    gc.freeze()
    pickle.dump([tuple(verdict) for verdict in _verdicts(job)], stdout)
    stdout.flush()


if __name__ == "__main__":
    main()
