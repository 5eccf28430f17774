"""The ways in which a model is run: kernels, delegates, threads, and when delegates come."""

from __future__ import annotations

import importlib.util
import itertools
from typing import Any, NamedTuple

import pytest

from oplet import Interpreter, load_delegate

__all__ = ["FEW", "WAYS", "Way", "installed", "needs"]


class Way(NamedTuple):
    """How a model is run.

    Attributes:
        engine: the kernels, or the delegate.
        threads: how many.
        late: whether the delegate comes after the first run.
    """

    engine: str
    threads: int
    late: bool = False

    def open(self, content: bytes) -> Interpreter:
        kernels: dict[str, Any] = {"prefer": ["oplet-builtin-ops"]} if self.engine == "numpy" else {}
        interpreter = Interpreter(model_content=content, num_threads=self.threads, **kernels)
        if not self.late:
            self.delegate(interpreter)
        return interpreter

    def delegate(self, interpreter: Interpreter) -> None:
        """Apply the delegate, if there is one."""
        if self.engine in ("litert", "openvino"):
            interpreter.modify_graph_with_delegate(load_delegate(self.engine))


def _ways() -> list[Way]:
    ways = [Way(engine, threads) for engine in ("numpy", "compiled") for threads in (1, 2)]
    return ways + [Way(*way) for way in itertools.product(("litert", "openvino"), (1, 2), (False, True))]


#: All of them.
WAYS = _ways()
#: Some, to take turns through many models; OpenVINO takes long to compile.
FEW = [
    Way("numpy", 1), Way("compiled", 2), Way("litert", 1), Way("numpy", 2), Way("compiled", 1), Way("litert", 2, late=True),
    Way("compiled", 2), Way("numpy", 1), Way("openvino", 1),
]  # fmt: skip


_PACKAGES = {"compiled": "oplet_compiled_ops", "litert": "ai_edge_litert", "openvino": "openvino"}


def needs(way: Way) -> None:
    """Skip where the way's package is not installed."""
    if way.engine in _PACKAGES:
        pytest.importorskip(_PACKAGES[way.engine])


def installed(way: Way) -> Way:
    """The way, or numpy's with as many threads where its package is not installed."""
    package = _PACKAGES.get(way.engine)
    return way if package is None or importlib.util.find_spec(package) else Way("numpy", way.threads)
