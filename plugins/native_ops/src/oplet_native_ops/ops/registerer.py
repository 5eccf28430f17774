"""Collects the operators that a function registers with a C++ resolver, emulated by this package."""

from __future__ import annotations

import ctypes
import functools
import threading

from oplet import BuiltinOperator
from oplet.errors import PluginError
from oplet_native_ops.ops.entry import Kernel, check_version, struct_kernel
from oplet_native_ops.shim.elf import bound_names
from oplet_native_ops.shim.library import shim
from oplet_native_ops.shim.opening import NativeLibrary

__all__ = ["registered"]

#: What a library calls to register an operator: `tflite::MutableOpResolver::AddCustom` and `AddBuiltin`, as compilers name them.
_ADD = ("_ZN6tflite17MutableOpResolver9AddCustom", "_ZN6tflite17MutableOpResolver10AddBuiltin")
_NO_MEMORY, _ITS_OWN = -1, -2
#: The library of this package fills one resolver at a time.
_lock = threading.Lock()

Registered = tuple[str | BuiltinOperator, range, Kernel]


def registered(library: NativeLibrary, function: str) -> tuple[Registered, ...]:
    """Call a library's function that registers operators; return each operator with its versions and kernel.

    Raises:
        PluginError: the function is missing, cannot be given oplet's resolver, or registers nothing or an invalid operator.
    """
    with _lock:
        return _registered(library, function)


@functools.cache
def _registered(library: NativeLibrary, function: str) -> tuple[Registered, ...]:
    source = f"{function} of {library.name}"
    register = library.registerer(function)
    if register is None:
        raise PluginError(
            f"{library.name} exports no function {function}, in C or with a tflite::MutableOpResolver * as its only argument in C++; "
            "name one that registers operators."
        )
    if library.was_loaded:
        raise PluginError(
            f"{library.name} was loaded before, by something else in this program, so that it registers its operators there; "
            f"load {function} before whatever brings the library is imported."
        )
    if not any(name.startswith(_ADD) for name in bound_names(library.path)):
        raise PluginError(
            f"{library.name} keeps LiteRT's resolver for itself, or registers nothing: it looks up neither AddCustom nor AddBuiltin of "
            "tflite::MutableOpResolver; build it without -Bsymbolic and hidden symbols, or without LiteRT."
        )
    own = shim()
    resolver = own.oplet_native_resolver()
    if not resolver:
        raise MemoryError
    register(resolver)
    count = own.oplet_native_resolver_count(resolver)
    if count == _NO_MEMORY:
        raise MemoryError
    if count == _ITS_OWN:
        raise PluginError(
            f"{source} fills a resolver of its own, which cannot be read; use a function that fills the one it is given."
        )
    if not count:
        raise PluginError(f"{source} registers no operators; name another function.")
    return tuple(_entry(resolver, i, source, library) for i in range(count))


def _entry(resolver: int, i: int, source: str, library: NativeLibrary) -> Registered:
    code, first, last = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    pointer = shim().oplet_native_resolver_entry(resolver, i, code, first, last)
    check_version(first.value, source)
    check_version(last.value, source)
    kernel = struct_kernel(pointer, source, library)
    if code.value == BuiltinOperator.CUSTOM:
        if not kernel.name:
            raise PluginError(f"{source} registers an operator without a name, which no model can call.")
        return kernel.name, range(first.value, last.value + 1), kernel
    if code.value not in BuiltinOperator._value2member_map_:
        raise PluginError(f"{source} registers an operator with the builtin code {code.value}, which is no operator's.")
    return BuiltinOperator(code.value), range(first.value, last.value + 1), kernel
