"""oplet's engines, by the names that users know them by."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from oplet import Interpreter, PluginManager, load_delegate

__all__ = ["ENGINES", "engine"]

ENGINES = ("numpy", "numba", "litert", "openvino", "auto")


def engine(name: str) -> Callable[..., Any]:
    """What makes an interpreter of that engine, from `model_content`."""
    if name == "numpy":
        return partial(Interpreter, plugins=PluginManager(block=["numba_ops"]))
    if name == "numba":
        return Interpreter
    if name == "auto":
        return partial(Interpreter, experimental_delegates="auto")
    return lambda **arguments: Interpreter(experimental_delegates=[load_delegate(name)], **arguments)
