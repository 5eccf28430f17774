"""A child that runs hostile models, watched from outside: one that dies or does not come to an end is replaced."""

from __future__ import annotations

import select
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.children import processor_seconds
from tests.complexity.protocol import Answer, Request, receive, send

from oplet_tools.processes import python_process

__all__ = ["GROWTH", "SLACK", "Watched", "offence"]

#: What is allowed: bytes that the process may grow by, twice the limit on the arena.
GROWTH = 2 * (64 << 20)

#: Seconds beyond `max_seconds` that one call may take, CPU seconds after which a child is ended, and seconds of the clock.
SLACK, _FAR, _WALL = 2.0, 4.0, 600.0

_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}  # fmt: skip


class Watched:
    """Models run by one engine; use it in a `with`."""

    def __init__(self, engine: str, place: Path | None = None) -> None:
        self._engine = engine
        self._stack = ExitStack()
        self._process: subprocess.Popen[Any] | None = None
        self._child: ExitStack | None = None
        self._traces = Path()
        self.runs = 0

    def __enter__(self) -> Watched:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._traces = Path(folder, "traces")
        return self

    def __exit__(self, *details: object) -> None:
        self._end()
        self._stack.close()

    def _start(self) -> subprocess.Popen[Any]:
        self._child = ExitStack()
        self._process = self._child.enter_context(
            python_process(
                ["-m", "tests.complexity.child", self._engine, str(self._traces)],
                environment=_ENVIRONMENT, folders=[Path(__file__).parents[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        )  # fmt: skip
        if receive(_pipe(self._process.stdout)) != "ready":
            raise RuntimeError("The child that runs models does not start.")
        return self._process

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child = self._process = None

    def run(self, request: Request) -> Answer:
        """What came of a model."""
        self.runs += 1
        process = self._process or self._start()
        used, since = processor_seconds(process.pid), time.monotonic()
        try:
            send(_pipe(process.stdin), request)
        except BrokenPipeError:
            return self._gone(process)
        while not select.select([_pipe(process.stdout)], [], [], 0.5)[0]:
            spent = processor_seconds(process.pid) - used
            if spent > (request.seconds or 10.0) + _FAR or time.monotonic() - since > _WALL:
                place = self._at()
                self._end()
                return Answer("hung", "?", place=place, seconds={"?": spent})
        answer = receive(_pipe(process.stdout))
        if answer is None:
            return self._gone(process)
        limit = request.seconds or 2.0
        if answer.slowest > limit + 1.5 and not answer.place:
            answer.place = self._at()
        return answer  # type: ignore[no-any-return]

    def _gone(self, process: subprocess.Popen[Any]) -> Answer:
        process.wait()
        place, status = self._at(), process.returncode
        self._end()
        return Answer("died", "?", f"exit {status}", place)

    def _at(self) -> str:
        lines = self._traces.read_text(errors="replace").splitlines() if self._traces.exists() else []
        ours = [line.strip() for line in lines if "/oplet" in line and "/core/src" not in line] or [
            line for line in lines if "oplet" in line
        ]
        return ours[0].replace('"', "")[-90:] if ours else "?"


def _pipe(stream: Any) -> Any:
    return stream


def offence(answer: Answer, seconds: float = 2.0) -> str:
    """What a model did that it may not, in a word; "" if nothing."""
    if answer.kind in ("died", "hung", "escaped"):
        return answer.kind
    if answer.asked:
        return "asked"
    if answer.grown > GROWTH:
        return "memory"
    if answer.slowest > seconds + SLACK:
        return "time"
    if answer.warned:
        return "warned"
    return ""
