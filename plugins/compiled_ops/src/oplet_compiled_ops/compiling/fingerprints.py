"""Fingerprints of kernels: hashes of all that their machine code is made from, so that a build compiles only what has changed."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import numpy as np

from oplet_compiled_ops.compiling import emitting, machine_code, numba_ir
from oplet_compiled_ops.compiling.emitting.every import MODULES
from oplet_compiled_ops.library import levels, rounding
from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.lazy import Emitted, Inlined
from oplet_compiled_ops.library.levels import Level

__all__ = ["fingerprint", "identity"]


@functools.cache
def _common() -> str:
    """Return a hash of what all kernels are made by: the modules of intrinsics, those that compile, and numba's and LLVM's versions."""
    modules = [*MODULES.values(), emitting.arguments, emitting.vectors, machine_code, numba_ir, levels, rounding]
    texts = [inspect.getsource(module) for module in modules]
    return _hashed("".join(texts), version("numba"), version("llvmlite"))


def _hashed(*parts: Any) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def fingerprint(kernel: Kernel, level: Level) -> str:
    """Return a hash of a kernel's source, with everything that it calls, and of the processor level that it is compiled for."""
    return _hashed(
        _common(),
        kernel.name,
        kernel.signature,
        _plain(kernel.fastmath),
        level._replace(tile_rows={}),
        *_parts(kernel.function, set()),
    )


def _parts(function: Any, seen: set[int]) -> Iterator[Any]:
    """Yield what a function computes: its code, and the constants and functions that it reads from its module and closure."""
    if id(function) in seen:
        return
    seen.add(id(function))
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    read = [function.__globals__[name] for name in sorted(set(function.__code__.co_names) & set(function.__globals__))]
    yield _code(function.__code__)
    for value in (*cells, *read):
        if isinstance(value, Inlined):
            yield [(name, _plain(option)) for name, option in sorted(value.options.items())]
            yield from _parts(value.function, seen)
        elif isinstance(value, Emitted):
            yield value.path
        elif isinstance(value, types.FunctionType):
            yield from _parts(value, seen)
        elif isinstance(value, (bool, int, float, str, tuple, np.generic, np.ufunc)):
            yield repr(value)


def _plain(option: Any) -> Any:
    """Return an option as a value whose text is the same in every process, which that of a set is not."""
    return sorted(option) if isinstance(option, (set, frozenset)) else option


def _code(code: types.CodeType) -> tuple[Any, ...]:
    constants = [
        _code(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts[1:]
    ]  # without docstring
    return code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, constants


def identity(fingerprints: list[str]) -> str:
    """Return a hash, 32 characters, that identifies a library by the fingerprints of its kernels."""
    return _hashed(*sorted(fingerprints))
