"""LLVM's IR of a kernel, by numba: without numba's own optimization, which would choose the vectors of the machine that builds."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import _dynfunc
from numba.core import codegen, cpu
from numba.core import types as numba_types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature

from oplet_compiled_ops.compiling.emitting.arguments import unpacked
from oplet_compiled_ops.library.kernels import DIRECT, Kernel
from oplet_compiled_ops.library.lazy import resolved

__all__ = ["ir_of"]

_word: Any = numba_types.int64
_WORD = ir.IntType(64)


def _never_called(context: Any, library: Any, description: Any, environment: Any) -> Any:
    """Return what stands for a compiled function in this process, as each has to have one of its own, without an address."""
    return _dynfunc.make_function(description.lookup_module(), description.qualname, "", 1, environment, (library,))


# Libraries of numba's functions are linked as they are written, and optimized once, as a whole and for the level (`machine_code`);
# nothing of them is loaded into this process.
_patched: Any = codegen.JITCodeLibrary
_patched._optimize_functions = lambda self, module: None
_patched._optimize_final_module = lambda self: None
_patched._finalize_specific = lambda self: None
_patched._finalize_final_module = lambda self: setattr(self, "_finalized", True)
_context: Any = cpu.CPUContext
_context.get_executable = _never_called
_context.create_cpython_wrapper = _context.create_cfunc_wrapper = lambda self, *_, **__: None


def ir_of(kernel: Kernel) -> str:
    """Return the IR of a module that defines, as C functions, the kernel that reads its arguments from int64 slots, named like the
    kernel, and for a kernel of int64 arguments alone one that takes these.

    Raises:
        Exception: numba refuses the kernel; the exception's class depends on its version.
    """
    kinds, _ = normalize_signature(kernel.signature)
    # The compiler makes no use of a reference count, as kernels allocate nothing; a kernel that does is refused.
    options = {"boundscheck": False, "error_model": "numpy", "fastmath": kernel.fastmath, "_nrt": False}
    function = resolved(kernel.function)
    function.__qualname__ = kernel.name
    compiled: Any = numba.njit(**options)(function)
    with global_compiler_lock:
        compiled.compile(tuple(kinds))
        result = compiled.overloads[tuple(kinds)]
        context = result.target_context
        library = context.codegen().create_library(f"library_{kernel.name}")
        module = library.create_ir_module(f"module_{kernel.name}")
        with context.push_code_library(library):
            builder, [words] = _begin(module, kernel.name, 1)
            _call(builder, context, result.fndesc, unpacked(context, builder, tuple(kinds), words))
            if all(kind == _word for kind in kinds):
                builder, arguments = _begin(module, kernel.name + DIRECT, len(kinds))
                _call(builder, context, result.fndesc, list(arguments))
        library.add_linking_library(result.library)
        library.add_ir_module(module)
        library.finalize()
        return _alone(library._final_module, {kernel.name, kernel.name + DIRECT})


def _begin(module: Any, symbol: str, count: int) -> tuple[ir.IRBuilder, Any]:
    """Add to an LLVM module a C function `symbol` of `count` int64 arguments; return the builder of its body, and the arguments."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_WORD] * count), symbol)
    return ir.IRBuilder(function.append_basic_block("entry")), function.args


def _call(builder: Any, context: Any, description: Any, arguments: list[Any]) -> None:
    """Emit a call of a compiled numba function, and the end of the C function that calls it; the status code is ignored.

    `context` is numba's target context, which knows its calling convention; `description` is numba's of the function.
    """
    called = context.call_conv.get_function_type(description.restype, description.argtypes)
    module = builder.module
    inner = module.globals.get(description.llvm_func_name) or ir.Function(module, called, description.llvm_func_name)
    context.call_conv.call_function(builder, inner, description.restype, description.argtypes, arguments)
    builder.ret_void()


def _alone(module: Any, exported: set[str]) -> str:
    """Return the IR of a module of which only some functions can be seen from outside, so that the others are inlined or dropped.

    These are numbered: numba's names count what the process compiled before, and a library's bytes must not hang on that.
    """
    copy = llvm.parse_assembly(str(module))
    for number, each in enumerate((*copy.functions, *copy.global_variables)):
        if not each.is_declaration and each.name not in exported:
            each.linkage, each.name = "internal", f"inner.{number}"
    return str(copy)
