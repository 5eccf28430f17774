"""Plays another system for the modules of oplet: what they import of Python's is as it would be there. All else runs as it is."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from tests.elsewhere.names import MISSING_MODULES, missing_attributes

__all__ = ["play"]

#: The byte that was locked last, by Windows's function.
locked: list[int] = []


class _Seen(types.ModuleType):
    """A module as oplet's modules see it.

    Args:
        real: the module.
        missing: names that it has not.
        changed: names that are something else.
    """

    def __init__(self, real: types.ModuleType, missing: frozenset[str], changed: dict[str, Any]) -> None:
        super().__init__(real.__name__)
        types.ModuleType.__getattribute__(self, "__dict__").update(_real=real, _missing=missing, _changed=changed)

    def __getattribute__(self, name: str) -> Any:
        own = types.ModuleType.__getattribute__(self, "__dict__")
        if name in own["_changed"]:
            return own["_changed"][name]
        if name in own["_missing"]:
            raise AttributeError(f"module {own['_real'].__name__!r} has no attribute {name!r}")
        return getattr(own["_real"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(types.ModuleType.__getattribute__(self, "__dict__")["_real"], name, value)


def _msvcrt() -> types.ModuleType:
    """Windows's module of its C library, with what locks files; it works on the part of a file that is named by its position."""
    import fcntl
    import os

    def locking(handle: int, mode: int, count: int) -> None:
        locked.append(os.lseek(handle, 0, os.SEEK_CUR))
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    module = types.ModuleType("msvcrt")
    module.LK_NBLCK, module.locking = 2, locking  # type: ignore[attr-defined]
    return module


def _repeat(array: Any, repeats: Any, axis: Any = None) -> Any:
    """numpy's `repeat` where its indices have 32 bits: counts of 64 bits are not taken."""
    import numpy as np

    if isinstance(repeats, np.ndarray) and not np.can_cast(repeats.dtype, np.int32):
        raise TypeError("Cannot cast array data from dtype('int64') to dtype('int32') according to the rule 'safe'")
    return np.repeat(array, repeats, axis)


def play(system: str) -> None:
    """Play "win32", "darwin" or "emscripten" from now on for the modules of oplet that are imported after this.

    Raises:
        RuntimeError: one is imported already.
    """
    import ctypes

    if any(name.partition(".")[0].startswith("oplet") for name in sys.modules):
        raise RuntimeError("modules of oplet are imported already, and have seen the system as it is")
    missing, hidden = missing_attributes(system), MISSING_MODULES.get(system, frozenset())
    changed: dict[str, dict[str, Any]] = {"sys": {"platform": system}}
    stand_ins: dict[str, types.ModuleType] = {}
    if system == "win32":

        class Library(ctypes.CDLL):
            def __init__(self, name: Any, *arguments: Any, **options: Any) -> None:
                if name is None:
                    raise TypeError("LoadLibrary() argument 1 must be str, not None")
                super().__init__(name, *arguments, **options)

        changed |= {"os": {"name": "nt"}, "subprocess": {"CREATE_NO_WINDOW": 0}, "ctypes": {"CDLL": Library, "PyDLL": Library}}
        stand_ins["msvcrt"] = _msvcrt()
    if system == "emscripten":
        import numpy as np

        changed["numpy"] = {"intp": np.int32, "repeat": _repeat}
    seen: dict[str, types.ModuleType] = {}
    real_import = builtins.__import__

    def imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level or not str((globals or {}).get("__name__", "")).startswith("oplet"):
            return real_import(name, globals, locals, fromlist, level)
        top = name.partition(".")[0]
        if name in stand_ins:
            return stand_ins[name]
        if top in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        found = real_import(name, globals, locals, fromlist, level)
        if found.__name__ not in missing and found.__name__ not in changed:
            return found
        if found.__name__ not in seen:
            seen[found.__name__] = _Seen(found, missing.get(found.__name__, frozenset()), changed.get(found.__name__, {}))
        return seen[found.__name__]

    builtins.__import__ = imported
