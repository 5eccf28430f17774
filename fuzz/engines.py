"""What models are run with: numpy's kernels, the compiled ones, or a delegate; a number says whose turn it is."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from oplet import Interpreter, Limits, PluginManager
from oplet.errors import ModelError

__all__ = ["DEFAULT", "DOCUMENTED", "LIMITS", "TURNS", "Engine", "engine_of", "installed", "limits_of", "opened", "turns_of"]

#: Of how many numbers each engine has how many. OpenVINO takes long to compile a graph.
TURNS = "numpy:3,numba:2,litert:2,openvino:1"

#: What docs/reliability.md advises for models of strangers.
DOCUMENTED = Limits(
    max_arena_bytes=64 << 20,
    max_tensor_bytes=64 << 20,
    max_nodes=2_000,
    max_while_iterations=10_000,
    max_seconds=2.0,
)

#: What holds where nobody says anything: there is no deadline, so whoever runs the model asks it to stop.
DEFAULT = Limits()

#: By name; they take turns too.
LIMITS = {"documented": DOCUMENTED, "default": DEFAULT}

#: The plugin of the compiled kernels.
_COMPILED = "oplet-numba-ops"

#: Which package each engine needs, and how many bytes of addresses beyond those that it takes when nothing was run yet.
_NEEDS = {
    "numpy": ("oplet_builtin_ops", 2 << 30),
    "numba": ("oplet_numba_ops", 3 << 30),
    "litert": ("oplet_litert_delegate", 4 << 30),
    "openvino": ("oplet_openvino_delegate", 6 << 30),
}


class Engine:
    """One way of running a model.

    Attributes:
        name: "numpy", "numba", or the name of the delegate, which numpy's kernels serve beside.
        address_space: bytes that a process needs beyond what it has.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.address_space = _NEEDS[name][1]
        self._plugins = PluginManager() if name == "numba" else PluginManager().without([_COMPILED])
        self._delegate = None
        if name not in ("numpy", "numba"):
            self._delegate = next((entry for entry in self._plugins.registry().entries() if entry.name == name), None)
            if self._delegate is None:
                raise ModelError(f"No package brings the delegate '{name}'.")

    def interpreter(self, **arguments: Any) -> Interpreter:
        """An interpreter that runs with it."""
        delegates = [self._delegate.create()] if self._delegate is not None else None
        return Interpreter(plugins=self._plugins, experimental_delegates=delegates, **arguments)


@cache
def opened(name: str) -> Engine:
    """The engine of a name; there is one of each in a process."""
    return Engine(name)


def turns_of(text: str) -> dict[str, int]:
    """Read "numpy:3,numba:2": the engines, and how often each has its turn.

    Raises:
        ValueError: an engine is unknown, or a number is none.
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
    """Those engines that can be had here."""
    needs = {"numba": "numba", "litert": "ai_edge_litert", "openvino": "openvino"}
    return {
        name: count
        for name, count in turns.items()
        if find_spec(_NEEDS[name][0]) is not None and (name not in needs or find_spec(needs[name]) is not None)
    }


def _turn(number: int) -> int:
    # Not the number itself: seeds take turns by it too, and each of them is to meet every engine.
    return zlib.crc32(b"%d" % number)


def engine_of(number: int, turns: Mapping[str, int]) -> str:
    """Whose turn a number is."""
    left = _turn(number) % sum(turns.values())
    for name, count in turns.items():
        left -= count
        if left < 0:
            return name
    return ""


def limits_of(number: int) -> str:
    """The name of the limits that hold for a number: both by turns."""
    return "default" if _turn(number) >> 16 & 1 else "documented"
