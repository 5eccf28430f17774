"""Public functions that load a library's operators, for an interpreter or a package.

Collects the operators that a function registers with a C++ resolver, emulated by this package.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from oplet import BuiltinOperator, MutableOpResolver, Provenance
from oplet.errors import PluginError
from oplet_native_ops.ops.entry import Kernel, check_version, entry_functions, load_kernel, struct_kernel
from oplet_native_ops.ops.kernel import native_registration
from oplet_native_ops.shim.elf import bound_names
from oplet_native_ops.shim.library import shim
from oplet_native_ops.shim.opening import NativeLibrary, open_library

__all__ = ["load_ops", "load_registerer", "register_library"]

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


Path_ = str | os.PathLike[str]
#: The op that models call, or a built-in operator, by the function that returns it.
Operators = Mapping[str | BuiltinOperator, str]


@functools.cache
def _kernel(library: NativeLibrary, function: str) -> Kernel:
    return load_kernel(library.path, function)


def _load(path: str, function: str) -> Kernel:
    return _kernel(open_library(path), function)


def _label(op: str | BuiltinOperator) -> str:
    """Return an op's name for messages."""
    return op.name if isinstance(op, BuiltinOperator) else op


class _Found(NamedTuple):
    op: str | BuiltinOperator
    version: int
    path: str
    function: str
    kernel: Kernel


def load_ops(path: Path_, operators: Operators | str | None = None) -> MutableOpResolver:
    """Load a shared library's operators, built for LiteRT's C API, for `Interpreter(op_resolver=...)`.

    The library is native code that runs inside this program and can do whatever it can: load what you trust. Several libraries go
    together with `MutableOpResolver.add_all`.

    Args:
        path: the library (.so). A file, or a name that is looked for in LD_LIBRARY_PATH and the system's folders.
        operators: the library's function for each operator, `{"Atan": "Register_ATAN"}`; the key is a BuiltinOperator such as
            `BuiltinOperator.CONV_2D` for one that replaces a built-in operator. Or the name of one function, whose operator
            declares its own name. By default all functions are called that are named like `Register_ATAN`, `AtanOpRegistration`,
            `AtanOpRegistrationExternal` or `AtanOperator`; each must take no arguments.

    Returns:
        A resolver of the operators, each in the version that the library declares, or 1.

    Raises:
        PluginError: the library cannot be loaded, or a function returns no operator, or one without a name.

    Examples:
        >>> from oplet_native_ops import load_ops  # doctest: +SKIP
        >>> Interpreter("atan.tflite", op_resolver=load_ops("libatan.so"))  # doctest: +SKIP
    """
    resolver = MutableOpResolver(Provenance(plugin=Path(path).name))
    for found in _operators(os.fspath(path), operators):
        _add(resolver, found)
    return resolver


def load_registerer(path: Path_, function: str) -> MutableOpResolver:
    """Load the operators that a function adds to a `tflite::MutableOpResolver *`, as for LiteRT's `custom_op_registerers`.

    The library is native code that runs inside this program, see `load_ops`. It must be loaded here before anything else in the
    program loads it. LiteRT need not be in it; where it is, its `AddCustom` and `AddBuiltin` must be exported, as linkers do unless told
    otherwise, so that they are found here instead.

    Args:
        path: the library (.so): a file, or a name that is looked for in LD_LIBRARY_PATH and the system's folders.
        function: the function's name in C, or, as "a::b", in C++. It is called once in a program.

    Returns:
        A resolver of the operators, each in the versions that it was registered for.

    Raises:
        PluginError: the library cannot be loaded or keeps its resolver for itself, or the function is not there or registers nothing.

    Examples:
        >>> import tensorflow  # doctest: +SKIP
        >>> load_registerer(".../libpybinds_library_common.so", "AddWhitespaceTokenize")  # doctest: +SKIP
    """
    resolver = MutableOpResolver(Provenance(plugin=Path(path).name))
    library = open_library(path)
    for op, versions, kernel in registered(library, function):
        for version in versions:
            _add(resolver, _Found(op, version, library.path, function, kernel))
    return resolver


def register_library(
    resolver: MutableOpResolver, path: Path_, operators: Operators | str | None = None, version: int = 1
) -> None:
    """Register the operators of a library that a package ships; to be called in its `register_ops`.

    Args:
        resolver: the argument of `register_ops`.
        path: the library, as `Path(__file__).with_name("libatan.so")`.
        operators: as for `load_ops`: the library's functions by the operators' names, one function, or None. With a mapping, the
            library is only opened when a model needs one of its operators.
        version: the version that operators of a mapping serve.

    Raises:
        PluginError: the library cannot be loaded, or a function returns no operator; with a mapping this is not checked here.
    """
    if not isinstance(operators, Mapping):
        for found in _operators(os.fspath(path), operators):
            _add(resolver, found)
        return
    for op, function in operators.items():
        load = functools.partial(_load_version, os.fspath(path), function, version)
        if isinstance(op, BuiltinOperator):
            resolver.add_builtin(op, native_registration(os.fspath(path), load, op), version)
        else:
            resolver.add_custom(op, native_registration(os.fspath(path), load), version)


def _load_version(path: str, function: str, version: int) -> Kernel:
    kernel = _load(path, function)
    if kernel.version not in (0, version):
        raise PluginError(f"{kernel.source} returns an operator of version {kernel.version}, which is registered as {version}.")
    return kernel


def _add(resolver: MutableOpResolver, found: _Found) -> None:
    if isinstance(found.op, BuiltinOperator):
        resolver.add_builtin(found.op, native_registration(found.path, lambda: found.kernel, found.op), found.version)
    else:
        resolver.add_custom(found.op, native_registration(found.path, lambda: found.kernel), found.version)


def _operators(path: str, operators: Operators | str | None) -> Iterator[_Found]:
    if isinstance(operators, Mapping):
        for op, function in operators.items():
            kernel = _load(path, function)
            yield _Found(op, kernel.version or 1, path, function, kernel)
        return
    functions = [operators] if isinstance(operators, str) else entry_functions(open_library(path))
    if not functions:
        raise PluginError(
            f"{Path(path).name} exports no function that is named like one that returns an operator; name it: "
            'load_ops(path, {"NameOfTheOp": "function"}).'
        )
    seen: dict[tuple[str | BuiltinOperator, int], Kernel] = {}
    for function in functions:
        kernel = _load(path, function)
        named: str | BuiltinOperator = kernel.name if kernel.builtin is None else kernel.builtin  # ADD is 0
        if named == "":
            raise PluginError(
                f"The operator that {kernel.source} returns does not say its name; give the one that models call: "
                f'load_ops(path, {{"NameOfTheOp": "{function}"}}).'
            )
        version = kernel.version or 1
        other = seen.setdefault((named, version), kernel)
        if other is not kernel:
            raise PluginError(
                f"{other.source} and {function} both return the operator {_label(named)} of version {version}; name the one to use: "
                f'load_ops(path, "{function}").'
            )
        yield _Found(named, version, path, function, kernel)
