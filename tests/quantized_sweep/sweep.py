"""Compares nets on oplet's numpy and compiled kernels with LiteRT's three ways, and counts."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tests.differential.worker import Answer, receive, run_steps, send

from oplet import Interpreter
from oplet.errors import OpletError
from oplet.plugins.manager import PluginManager

from .draft import Net

WAYS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")
#: Kernels of oplet, and the plugins that bring them.
ENGINES = {
    name: PluginManager(load=plugins)
    for name, plugins in (("numpy", ["oplet-builtin-ops"]), ("compiled", ["oplet-builtin-ops", "oplet-compiled-ops"]))
}
BATCH = 100
_LARGEST = 3.4e38


class LiteRT:
    """A server process of litert_batch.py."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("litert_batch.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    def run(self, nets: list[Net]) -> Iterator[list[Answer]]:
        """For each net its answers in the three ways."""
        send(self.process.stdin, [(net.model, net.steps, way) for net in nets for way in WAYS])
        answers = [Answer(*answer) for answer in receive(self.process.stdout)]
        for start in range(0, len(answers), len(WAYS)):
            yield answers[start : start + len(WAYS)]

    def close(self) -> None:
        """End the server."""
        self.process.kill()
        self.process.communicate()


@dataclass
class Sweep:
    """What was found.

    Attributes:
        litert: the oracle.
        engines: which kernels of oplet are compared.
        seen: how many nets LiteRT ran in some way, refused, or died of in all ways; how many runs there were.
        failures: one line each.
    """

    litert: LiteRT
    engines: dict[str, PluginManager] = field(default_factory=lambda: engines())
    seen: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def check(self, makers: Iterable[Callable[[], Net | None]]) -> None:
        """Compare nets, many at a time."""
        nets = (net for make in makers if (net := make()) is not None)
        while batch := list(islice(nets, BATCH)):
            for net, theirs in zip(batch, self.litert.run(batch)):
                self.seen["nets"] += 1
                for engine, plugins in self.engines.items():
                    self._judge(net, engine, run_net(net, plugins), theirs)

    def _judge(self, net: Net, engine: str, ours: Answer, theirs: list[Answer]) -> None:
        ran = [answer for answer in theirs if answer.kind == "ran"]
        self.seen["runs"] += len(net.steps)
        if not ran:
            self.seen[f"{theirs[0].kind} by LiteRT, {ours.kind} by oplet"] += 1
            return
        if ours.kind != "ran":
            self.failures.append(f"{net.name}: {engine} {ours.kind} what LiteRT runs {[a.kind for a in theirs]}: {ours.message}")
            return
        differences = [difference(ours.outputs, answer.outputs) for answer in ran]
        self.seen["compared"] += 1
        if all(differences):
            kinds = [a.kind for a in theirs]
            agree = all(not difference(ran[0].outputs, other.outputs) for other in ran[1:])
            self.failures.append(
                f"{net.name}: {engine} differs ({kinds}, {'agreeing' if agree else 'disagreeing'}): {differences[-1]}"
            )


def engines() -> dict[str, PluginManager]:
    """The kernels that are installed."""
    return {
        name: plugins for name, plugins in ENGINES.items() if name == "numpy" or importlib.util.find_spec("oplet_compiled_ops")
    }


def run_net(net: Net, plugins: PluginManager) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return run_steps(Interpreter, net.model, net.steps, OpletError, plugins=plugins)
        except Exception as error:
            return Answer("failed", [], f"{type(error).__name__}: {error}")


def difference(ours: list[list[Any]], theirs: list[list[Any]]) -> str:
    """Where answers differ; floats may by a few units of their last place."""
    for step, (mine, others) in enumerate(zip(ours, theirs)):
        for output, (a, b) in enumerate(zip(mine, others)):
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                return f"step {step}, output {output}: {a.dtype}{list(a.shape)}, LiteRT {b.dtype}{list(b.shape)}"
            if a.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    # Layers without an activation clamp to the largest floats in some of LiteRT's ways, which oplet does not.
                    a, b = (np.clip(values, -_LARGEST, _LARGEST) for values in (a, b))
                    wrong = ~np.isclose(a, b, rtol=2e-5, atol=1e-6 * np.abs(b[np.isfinite(b)]).max(initial=0), equal_nan=True)
            else:
                wrong = a != b
            if wrong.any():
                place = tuple(np.argwhere(wrong)[0])
                return f"step {step}, output {output}: {int(wrong.sum())} of {a.size}, first {a[place]} at {list(map(int, place))}, LiteRT {b[place]}"
    return ""
