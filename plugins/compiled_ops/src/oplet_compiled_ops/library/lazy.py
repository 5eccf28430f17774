"""Lazy references to functions that kernels call: numba is imported when a kernel is compiled, not when one is loaded.

Kernels call functions in Python (`inlined`) and functions that emit LLVM instructions (`emitted`). Both are placeholders, which
`resolved` replaces by numba's functions and intrinsics when a kernel is compiled.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

__all__ = ["Emitted", "Inlined", "emitted", "inlined", "resolved"]


class Emitted:
    """Placeholder of a numba intrinsic, by the name of its module in `compiling.emitting` and its own: "module:name"."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"emitted({self.path})"

    def made(self) -> Any:
        from oplet_compiled_ops.compiling.emitting.every import MODULES

        module, _, name = self.path.partition(":")
        return getattr(MODULES[module], name)


class Inlined:
    """Placeholder of a Python function that numba inlines into its callers."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options = function, options
        self._made: Any = None

    def __repr__(self) -> str:
        return f"inlined({self.function.__module__}:{self.function.__name__})"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def made(self) -> Any:
        if self._made is None:
            import numba

            self._made = numba.njit(_nrt=False, **self.options)(resolved(self.function))
        return self._made


def emitted(path: str) -> Any:
    """Return a placeholder of the intrinsic "module:name" below `oplet_compiled_ops.compiling.emitting`, for kernels to call."""
    return Emitted(path)


def inlined(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for functions that kernels call; they stay Python functions until a kernel that calls them is compiled.

    Args:
        options: options of `numba.njit`.
    """
    return lambda function: Inlined(function, options)


def resolved(function: Callable[..., Any]) -> types.FunctionType:
    """Return a copy of a Python function whose globals and closure hold numba's functions and intrinsics in place of
    placeholders.
    """
    code: types.CodeType = function.__code__
    names: dict[str, Any] = dict(function.__globals__)
    for name in _names(code):
        if name in names:
            names[name] = _made(names[name])
    cells = tuple(types.CellType(_made(cell.cell_contents)) for cell in function.__closure__ or ())
    result = types.FunctionType(code, names, function.__name__, None, cells)
    result.__module__ = function.__module__
    return result


def _names(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*(_names(one) for one in inner))


def _made(value: Any) -> Any:
    return value.made() if isinstance(value, (Emitted, Inlined)) else value
