"""Engines that models are run with: numpy's kernels, the compiled ones, or a delegate; a model's number determines its engine and limits."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from oplet import Interpreter, Limits, PluginManager
from oplet.errors import ModelError

__all__ = ["DEFAULT", "DOCUMENTED", "LIMITS", "TURNS", "Engine", "engine_of", "installed", "limits_of", "opened", "turns_of"]

#: Default shares of the engines. OpenVINO's is small, as it takes long to compile a graph.
TURNS = "numpy:3,compiled:2,litert:2,openvino:1"

#: The limits that docs/reliability.md recommends for untrusted models.
DOCUMENTED = Limits(
    max_arena_bytes=64 << 20,
    max_tensor_bytes=64 << 20,
    max_nodes=2_000,
    max_while_iterations=10_000,
    max_seconds=2.0,
)

#: The default limits, which have no deadline; a watchdog asks the model to stop.
DEFAULT = Limits()

#: The limits by name; they alternate too.
LIMITS = {"documented": DOCUMENTED, "default": DEFAULT}

#: The plugin of the compiled kernels.
_COMPILED = "oplet-compiled-ops"

#: For each engine the package that it needs, and the bytes of address space that it needs beyond those of the fresh process.
_NEEDS = {
    "numpy": ("oplet_builtin_ops", 2 << 30),
    "compiled": ("oplet_compiled_ops", 3 << 30),
    "litert": ("oplet_litert_delegate", 4 << 30),
    "openvino": ("oplet_openvino_delegate", 6 << 30),
}


class Engine:
    """A way of running a model.

    Attributes:
        name: "numpy", "compiled", or the name of a delegate, whose remaining nodes numpy's kernels run.
        address_space: bytes of address space that a process needs beyond those of the fresh process.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.address_space = _NEEDS[name][1]
        self._plugins = PluginManager() if name == "compiled" else PluginManager().without([_COMPILED])
        self._delegate = None
        if name not in ("numpy", "compiled"):
            self._delegate = next((entry for entry in self._plugins.registry().entries() if entry.name == name), None)
            if self._delegate is None:
                raise ModelError(f"No package brings the delegate '{name}'.")

    def interpreter(self, **arguments: Any) -> Interpreter:
        """An interpreter with this engine."""
        delegates = [self._delegate.create()] if self._delegate is not None else None
        return Interpreter(plugins=self._plugins, experimental_delegates=delegates, **arguments)


@cache
def opened(name: str) -> Engine:
    """The engine of a name; a process has one of each."""
    return Engine(name)


def turns_of(text: str) -> dict[str, int]:
    """Parse shares of engines, such as "numpy:3,compiled:2".

    Raises:
        ValueError: an engine is unknown, or a share is not a number.
    """
    turns: dict[str, int] = {}
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        if name not in _NEEDS or not (count or "1").isdecimal():
            raise ValueError(f"'{part}' is no engine with a number behind a colon; there are {', '.join(_NEEDS)}.")
        turns[name] = int(count or 1)
    if not any(turns.values()):
        raise ValueError(f"In '{text}' no engine has a turn.")
    return turns


def installed(turns: Mapping[str, int]) -> dict[str, int]:
    """The engines that are installed."""
    needs = {"litert": "ai_edge_litert", "openvino": "openvino"}
    return {
        name: count
        for name, count in turns.items()
        if find_spec(_NEEDS[name][0]) is not None and (name not in needs or find_spec(needs[name]) is not None)
    }


def _turn(number: int) -> int:
    # A hash of the number, since the number itself selects the seed: each seed is to be run with every engine.
    return zlib.crc32(b"%d" % number)


def engine_of(number: int, turns: Mapping[str, int]) -> str:
    """The name of the engine that runs a number."""
    left = _turn(number) % sum(turns.values())
    for name, count in turns.items():
        left -= count
        if left < 0:
            return name
    return ""


def limits_of(number: int) -> str:
    """The name of the limits for a number; they alternate."""
    return "default" if _turn(number) >> 16 & 1 else "documented"
