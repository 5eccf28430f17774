"""The compiler: machine code of kernels, by numba and LLVM. Imported only if something must be compiled."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from oplet_compiled_ops.compiling.configuring import import_numba

import_numba()

import llvmlite.binding as llvm  # noqa: E402
import numba  # noqa: E402
from llvmlite import ir  # noqa: E402
from numba.core import types as numba_types  # noqa: E402
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402
from numba.core.sigutils import normalize_signature  # noqa: E402

from oplet_compiled_ops.compiling.emitting.arguments import unpacker  # noqa: E402
from oplet_compiled_ops.compiling.kernels import ENTRIES, IMAGE, OBJECT  # noqa: E402
from oplet_compiled_ops.compiling.lazy import resolved  # noqa: E402
from oplet_compiled_ops.compiling.machine_code.image import ImageError, linked  # noqa: E402

if TYPE_CHECKING:
    from oplet_compiled_ops.compiling.kernels import Kernel

__all__ = ["machine_code"]

_ENTER, _DIRECT = ENTRIES
_word: Any = numba_types.int64


def machine_code(kernel: Kernel) -> bytes:
    """Compile a kernel; return its machine code behind one byte: `IMAGE` (position-independent code with relocations) or `OBJECT`
    (ELF file).

    Raises:
        Exception: numba or LLVM refuses the kernel; the exception's class depends on their versions.
    """
    llvm.initialize_native_asmparser()  # for `dot_bytes`
    kinds, _ = normalize_signature(kernel.signature)
    # The compiler makes no use of a reference count, as kernels allocate nothing; a kernel that does is refused.
    options = {"boundscheck": False, "error_model": "numpy", "fastmath": kernel.fastmath, "_nrt": False}
    function = resolved(kernel.function)
    function.__qualname__ = name = kernel.name.replace("-", "_")
    compiled: Any = numba.njit(**options)(function)
    names = {"kernel": compiled, "unpack": unpacker(tuple(kinds)), "__name__": __name__}
    enter: Any = types.FunctionType(_enter.__code__, names)
    enter.__qualname__ = f"enter_{name}"
    data = _object(name, compiled, tuple(kinds), numba.njit(**options)(enter))
    try:
        return IMAGE + linked(data, ENTRIES).to_bytes()
    except ImageError:
        return OBJECT + data


def _enter(words):  # type: ignore[no-untyped-def]
    kernel(*unpack(words))  # type: ignore[name-defined]  # noqa: F821


def _object(name: str, compiled: Any, kinds: tuple[Any, ...], enter: Any) -> bytes:
    """Return an object file that exports the kernel `compiled`, a numba function of arguments of the types `kinds`, as `ENTRIES`
    names it.

    `enter` is the numba function that reads the kernel's arguments from int64 slots at an address, and calls the kernel.
    """
    with global_compiler_lock:
        enter.compile((_word,))
        results: dict[str, Any] = {_ENTER: enter.overloads[(_word,)]}
        if all(kind == _word for kind in kinds):
            results[_DIRECT] = compiled.overloads[kinds]
        context = results[_ENTER].target_context
        library = context.codegen().create_library(f"library_{name}")
        module = library.create_ir_module(f"module_{name}")
        for symbol, result in results.items():
            _export(module, symbol, context, result)
            library.add_linking_library(result.library)
        library.add_ir_module(module)
        library.enable_object_caching()
        library.finalize()
        library.get_pointer_to_function(_ENTER)
        return bytes(library._get_compiled_object())


def _export(module: Any, symbol: str, context: Any, result: Any) -> None:
    """Add to an LLVM module a C function `symbol` of int64 arguments that calls a compiled numba function and ignores its status
    code.

    `context` is numba's target context, which knows its calling convention; `result` is numba's compilation result of the
    function.
    """
    description, word = result.fndesc, ir.IntType(64)
    called = context.call_conv.get_function_type(description.restype, description.argtypes)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * len(description.argtypes)), symbol)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    inner = ir.Function(module, called, description.llvm_func_name)
    context.call_conv.call_function(builder, inner, description.restype, description.argtypes, list(function.args))
    builder.ret_void()
