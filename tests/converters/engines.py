"""oplet's engines, by the names that users know them by."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

from oplet import Interpreter, PluginManager, load_delegate

__all__ = ["ENGINES", "available", "engine"]

ENGINES = ("numpy", "compiled", "litert", "openvino", "auto")


def available(name: str) -> bool:
    """Whether an engine's packages are installed."""
    needed = {
        "compiled": ["oplet_compiled_ops"],
        "litert": ["oplet_litert_delegate"],
        "openvino": ["oplet_openvino_delegate", "openvino"],
    }
    return all(importlib.util.find_spec(package) is not None for package in needed.get(name, []))


def engine(name: str) -> Callable[..., Any]:
    """What makes an interpreter of that engine, from `model_content`."""
    if name == "numpy":
        return partial(Interpreter, plugins=PluginManager(block=["compiled_ops"] if available("compiled") else []))
    if name == "compiled":
        return Interpreter
    if name == "auto":
        return partial(Interpreter, experimental_delegates="auto")
    return lambda **arguments: Interpreter(experimental_delegates=[load_delegate(name)], **arguments)
