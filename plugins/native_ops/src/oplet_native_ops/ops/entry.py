"""Reading of the operators that a library's functions return, with sanity checks of their structs."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass

from oplet import BuiltinOperator
from oplet.errors import PluginError
from oplet_native_ops.shim.library import shim
from oplet_native_ops.shim.memory import Mappings, word
from oplet_native_ops.shim.opening import NativeLibrary, open_library

__all__ = ["Kernel", "check_version", "entry_functions", "load_kernel", "struct_kernel"]

#: How functions that return an operator are called: `Register_ATAN`, also in namespaces, `AtanOpRegistration`, `AtanOperator`, and in
#: C++ only those without arguments.
_PLAIN = re.compile(r"(Register_\w+|(?!TfLite)\w*(Registration|RegistrationExternal|Operator))\Z")
_MANGLED = re.compile(r"_Z(N[0-9A-Za-z_]+E|\d+\w+?)v\Z")
#: Bytes of a TfLiteRegistration of any generation, and the offsets in it.
_BYTES, _METHODS, _BUILTIN_CODE, _CUSTOM_NAME, _VERSION = (
    64,
    ("init", "free", "prepare", "invoke", "profiling_string"),
    40,
    48,
    56,
)
_HAS_INVOKE = 8
_HIGHEST_VERSION = 9999


@dataclass(eq=False)
class Kernel:
    """An operator of a library: its function pointers."""

    pointer: int  #: The address of the C struct that holds its functions.
    name: str  #: The custom op's name that the library declares; "" for none.
    builtin: (
        BuiltinOperator | None
    )  #: The built-in operator that it replaces; None for a custom op, or if the library declares none.
    version: int  #: The op version that it serves; 0 if the library does not declare one.
    source: str  #: The names of its function and library, for messages.


def entry_functions(library: NativeLibrary) -> list[str]:
    """Return the names of a library's functions that may return operators, as `Register_ATAN`; those in C++ as "a::b"."""
    found = []
    for symbol in library.info.functions:
        name = symbol
        if symbol.startswith("_Z"):
            if not _MANGLED.match(symbol):
                continue
            name = _demangled(symbol)
        if name and _PLAIN.match(name.rpartition("::")[2]):
            found.append(name)
    return sorted(set(found))


def _demangled(symbol: str) -> str:
    """Demangle the C++ name of a function without arguments; "" if it is not such a one."""
    rest = symbol[3:-2] if symbol.startswith("_ZN") else symbol[2:-1]
    parts = []
    while rest:
        length = re.match(r"\d+", rest)
        if length is None:
            return ""
        at = length.end()
        size = int(length[0])
        parts.append(rest[at : at + size])
        if len(parts[-1]) < size:
            return ""
        rest = rest[at + size :]
    return "::".join(parts)


def load_kernel(path: str, function: str) -> Kernel:
    """Load the operator that a function of a library returns.

    Raises:
        PluginError: the library or the function is missing, or the function does not return a valid operator.
    """
    library = open_library(path)
    source = f"{function} of {library.name}"
    entry = library.function(function)
    if entry is None:
        known = entry_functions(library)
        there = f"it has {', '.join(known[:6])}" if known else "it exports none that look so"
        raise PluginError(f"{library.name} exports no function {function} that returns an operator; {there}.")
    pointer = entry()
    if not pointer:
        raise PluginError(f"{source} returns no operator but a null pointer.")
    if shim().oplet_native_is_operator(pointer):
        return _opaque(pointer, source)
    return struct_kernel(pointer, source, library)


def _opaque(pointer: int, source: str) -> Kernel:
    own = shim()
    code, name = own.TfLiteOperatorGetBuiltInCode(pointer), own.TfLiteOperatorGetCustomName(pointer)
    version = own.TfLiteOperatorGetVersion(pointer)
    builtin = None
    if code != BuiltinOperator.CUSTOM:
        builtin = _builtin(code)
        if builtin is None:
            raise PluginError(f"{source} returns an operator with the builtin code {code}, which is no operator's.")
    check_version(version, source)
    return _runnable(pointer, True, _text(name), builtin, version, source)


def struct_kernel(pointer: int, source: str, library: NativeLibrary) -> Kernel:
    """Read a TfLiteRegistration; first check that its memory and pointers are plausible, as the pointer may lead to anything.

    Args:
        pointer: the address of the struct.
        source: the names of its function and library, for messages.
        library: the library that returned it.
    """
    mapped = Mappings()
    if not mapped.has(pointer, _BYTES, "r"):
        raise PluginError(f"{source} returns {pointer:#x}, where the program has no memory: it is no operator.")
    for i, method in enumerate(_METHODS):
        address = word(pointer + 8 * i)
        if address and not mapped.has(address, 1, "x"):
            raise PluginError(
                f"What {source} returns is no TfLiteRegistration: its {method} is no function. An operator of TfLiteOperatorCreate "
                "must come from the function of oplet-native-ops; a library with a LiteRT of its own brings another one, "
                "so link it without."
            )
    name_at, version = word(pointer + _CUSTOM_NAME), ctypes.c_int.from_address(pointer + _VERSION).value
    if name_at and not mapped.has(name_at, 1, "r"):
        raise PluginError(f"What {source} returns is no TfLiteRegistration: its custom_name is no text.")
    if version:  # who fills in nothing leaves 0
        check_version(version, source)
    code = ctypes.c_int32.from_address(pointer + _BUILTIN_CODE).value
    name = _text(ctypes.c_char_p(name_at).value) if name_at else ""
    # 0 is ADD, and what is left when nothing is filled in.
    builtin = _builtin(code) if code > 0 and code != BuiltinOperator.CUSTOM and not name else None
    return _runnable(pointer, False, name, builtin, version, source)


def _runnable(pointer: int, opaque: bool, name: str, builtin: BuiltinOperator | None, version: int, source: str) -> Kernel:
    own = shim()
    kernel = own.oplet_native_kernel(pointer, opaque)
    if not kernel:
        raise MemoryError
    if not own.oplet_native_methods(kernel) & _HAS_INVOKE:
        own.oplet_native_kernel_free(kernel)
        raise PluginError(f"The operator that {source} returns has no invoke, so it cannot run.")
    return Kernel(kernel, name, builtin, version, source)


def _builtin(code: int) -> BuiltinOperator | None:
    return BuiltinOperator(code) if code in BuiltinOperator._value2member_map_ else None


def check_version(version: int, source: str) -> None:
    if not 1 <= version <= _HIGHEST_VERSION:
        raise PluginError(
            f"{source} returns an operator of version {version}; versions are numbers from 1 to {_HIGHEST_VERSION}."
        )


def _text(name: bytes | None) -> str:
    return "" if name is None else name.decode("utf-8", "replace")
