"""Public functions that load a library's operators, for an interpreter or a package."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from oplet import BuiltinOperator, MutableOpResolver, Provenance
from oplet.errors import PluginError
from oplet_native_ops.ops.entry import Kernel, entry_functions, load_kernel
from oplet_native_ops.ops.kernel import native_registration
from oplet_native_ops.ops.registerer import registered
from oplet_native_ops.shim.opening import NativeLibrary, open_library

__all__ = ["load_ops", "load_registerer", "register_library"]

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
