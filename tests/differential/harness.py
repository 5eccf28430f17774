"""Run a case on oplet and on LiteRT and say where they differ."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.places import ROOT

from oplet import Interpreter
from oplet.errors import OpletError

from .worker import Answer, Request, receive, run_steps, send

Array = np.ndarray[Any, Any]

#: The oracles: equality with any counts. The reference kernels go first; some ops they lack or compute wrongly, and XNNPACK alone runs
#: some types.
RESOLVERS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")


@dataclass
class Case:
    """A model, what to feed it, and how close the answers must be.

    Attributes:
        model: the bytes of the model.
        steps: one list of arrays per invoke.
        rtol: tolerance of floats relative to the value.
        atol: tolerance of floats relative to the largest finite value of the output.
        floor: what a float may differ by in any case.
        broken: what was made wrong on purpose, "" if the model is meant to be valid.
        note: what a failure report should say of it.
    """

    model: bytes
    steps: list[list[Array]]
    rtol: float = 1e-5
    atol: float = 1e-6
    floor: float = 0.0
    broken: str = ""
    note: str = ""


class LiteRT:
    """A server process of worker.py, started when it is first asked and again when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.differential.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=ROOT,
        )

    def run(self, case: Case, resolver: str, seconds: float = 5.0) -> Answer:
        """What LiteRT does with a case."""
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            send(process.stdin, tuple(Request(case.model, case.steps, resolver, seconds)))
            return Answer(*receive(process.stdout))
        except (EOFError, BrokenPipeError):
            self.close()
            return Answer("died", [], "the worker is gone")

    def close(self) -> None:
        """End the server."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.kill()
            self._process.communicate()
            self._process = None


def run_oplet(case: Case) -> Answer:
    """What oplet does with a case; anything but an OpletError is an accident and goes up."""
    return run_steps(Interpreter, case.model, case.steps, OpletError)


def difference(ours: Array, theirs: Array, case: Case) -> str:
    """Where two arrays differ; "" if nowhere: integers, bools and strings exactly, floats within the tolerances."""
    if ours.dtype != theirs.dtype:
        return f"type {ours.dtype}, LiteRT {theirs.dtype}"
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)}, LiteRT {list(theirs.shape)}"
    if ours.dtype.kind not in "fc":
        wrong = np.asarray(ours != theirs)
    elif ours.dtype.kind == "c":
        wrong = _far(ours.real, theirs.real, case) | _far(ours.imag, theirs.imag, case)
    else:
        wrong = _far(ours, theirs, case)
    if not wrong.any():
        return ""
    places = np.argwhere(wrong)
    shown = "; ".join(f"{place.tolist()}: {ours[tuple(place)]!r}, LiteRT {theirs[tuple(place)]!r}" for place in places[:4])
    return f"{len(places)} of {ours.size} values of {ours.dtype} {list(ours.shape)}: {shown}"


def _far(ours: Array, theirs: Array, case: Case) -> Array:
    finite = np.abs(theirs[np.isfinite(theirs)], dtype=np.float64)
    slack = case.floor + (case.atol * float(finite.max()) if finite.size else 0.0)
    return ~np.isclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=case.rtol, atol=slack, equal_nan=True)


def verdict(ours: Answer, theirs: Answer, case: Case) -> str:
    """How oplet's answer contradicts LiteRT's; "" if it does not."""
    if theirs.kind in ("died", "hung"):
        return ""
    if case.broken and ours.kind == "refused":
        return ""  # LiteRT runs some of what is broken; refusing it is never wrong
    if case.broken == "type" and (ours.kind, theirs.kind) == ("ran", "refused"):
        return ""  # some types that no kernel of LiteRT takes have a clear meaning
    if ours.kind != theirs.kind:
        return f"oplet {ours.kind} {ours.message}\nLiteRT {theirs.kind} {theirs.message}"
    if ours.kind == "refused":
        return ""
    for step, (mine, other) in enumerate(zip(ours.outputs, theirs.outputs)):
        for index, (a, b) in enumerate(zip(mine, other)):
            found = difference(a, b, case)
            if found.startswith("type ") and case.broken == "type":
                continue  # LiteRT lets the bits of one type stand for another, where oplet corrects the output's type
            if found:
                return f"step {step}, output {index}: {found}"
    return ""


@dataclass
class Differential:
    """Compares cases and counts what happened to them."""

    litert: LiteRT = field(default_factory=LiteRT)
    seen: Counter[str] = field(default_factory=Counter)

    def check(self, case: Case) -> str:
        """How oplet contradicts all oracles; "" if it agrees with one."""
        ours = run_oplet(case)
        found = []
        for resolver in RESOLVERS:
            theirs = self.litert.run(case, resolver)
            contradiction = verdict(ours, theirs, case)
            if not contradiction:
                self.seen["broken" if case.broken else theirs.kind] += 1
                return ""
            found.append(f"{resolver}: {contradiction}")
        return "\n".join(found)
