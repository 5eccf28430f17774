"""Operators and delegates in C and C++ for oplet: unmodified shared libraries built for LiteRT's public C API.

Examples:
    >>> from oplet import Interpreter
    >>> from oplet_native_ops import load_ops
    >>> Interpreter("atan.tflite", op_resolver=load_ops("libatan.so"))  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oplet_native_ops.headers import cflags, include_dir
    from oplet_native_ops.ops.loading import load_ops, load_registerer, register_library

__all__ = ["cflags", "include_dir", "load_ops", "load_registerer", "register_library"]

#: Where each name lives. They load when they are first used: every program that runs a model imports this package to ask what it
#: brings, and most use none of it.
_HOMES = {
    "cflags": "oplet_native_ops.headers",
    "include_dir": "oplet_native_ops.headers",
    "load_ops": "oplet_native_ops.ops.loading",
    "load_registerer": "oplet_native_ops.ops.loading",
    "register_library": "oplet_native_ops.ops.loading",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'oplet_native_ops' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
