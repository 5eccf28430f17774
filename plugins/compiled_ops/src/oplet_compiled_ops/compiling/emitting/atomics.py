"""Atomic memory operations, and calls by address, for kernels that synchronize threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import I32, I64, address
from oplet_compiled_ops.library.levels import current

__all__ = ["ask", "ask_about", "enter", "highest_bit", "load", "lowest_bit", "pause", "store", "take_away", "take_bits"]

_VOID = ir.VoidType()
_I1 = ir.IntType(1)


def _operation(count: int, answers: bool, emit: Callable[..., Any]) -> Any:
    """Build an intrinsic of `count` integer arguments from a function that emits its LLVM IR; it returns an integer if `answers`."""

    def typed() -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: list[Any]) -> Any:
            result = emit(builder, *arguments)
            return result if answers else context.get_dummy_value()

        return (types.int64 if answers else types.void)(*[types.int64] * count), generate

    # numba inspects the number of parameters
    def of_none(typing_context):  # type: ignore[no-untyped-def]
        return typed()

    def of_one(typing_context, a):  # type: ignore[no-untyped-def]
        return typed()

    def of_two(typing_context, a, b):  # type: ignore[no-untyped-def]
        return typed()

    return intrinsic((of_none, of_one, of_two)[count])


def _word(b: ir.IRBuilder, where: Any) -> Any:
    return address(b, where, I64(0), I64)


def _counted(name: str) -> Callable[..., Any]:
    def emit(b: ir.IRBuilder, value: Any) -> Any:
        module = b.module
        function = module.globals.get(name) or ir.Function(module, ir.FunctionType(I64, [I64, _I1]), name)
        return b.call(function, [value, _I1(1)])

    return emit


def _pause(b: ir.IRBuilder) -> None:
    name, arguments = ("llvm.aarch64.isb", [I32(15)]) if current().machine == "aarch64" else ("llvm.x86.sse2.pause", [])
    kind = ir.FunctionType(_VOID, [argument.type for argument in arguments])
    b.call(b.module.globals.get(name) or ir.Function(b.module, kind, name), arguments)


def _function(b: ir.IRBuilder, where: Any, result: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(result, [I64] * len(arguments))
    return b.call(b.inttoptr(where, kind.as_pointer()), arguments)


#: Load the word at an address (acquire: later reads see what was written before the matching `store`).
load = _operation(1, True, lambda b, where: b.load_atomic(_word(b, where), "acquire", 8))
#: Store the second argument at an address (release: see `load`).
store = _operation(2, False, lambda b, where, value: b.store_atomic(value, _word(b, where), "release", 8))
#: Clear these bits of the word at an address; returns its previous value.
take_bits = _operation(2, True, lambda b, where, bits: b.atomic_rmw("and", _word(b, where), b.not_(bits), "acq_rel"))
#: Subtract the second argument from the word at an address; returns its previous value.
take_away = _operation(2, True, lambda b, where, less: b.atomic_rmw("sub", _word(b, where), less, "acq_rel"))
#: The index of the lowest bit of a positive number.
lowest_bit = _operation(1, True, _counted("llvm.cttz.i64"))
#: The index of the highest bit of a positive number.
highest_bit = _operation(1, True, lambda b, value: b.sub(I64(63), _counted("llvm.ctlz.i64")(b, value)))
#: The processor's hint for a spin-wait loop.
pause = _operation(0, False, _pause)
#: Call the function void(second argument) at an address.
enter = _operation(2, False, lambda b, where, words: _function(b, where, _VOID, words))
#: Call the function int() at an address.
ask = _operation(1, True, lambda b, where: b.sext(_function(b, where, ir.IntType(32)), I64))
#: Call the function int(second argument) at an address.
ask_about = _operation(2, True, lambda b, where, word: b.sext(_function(b, where, ir.IntType(32), word), I64))
