"""Copy of a single number between addresses."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.vectors import I64, address

__all__ = ["move"]


def _move_code(context: Any, size: Any, source: Any, target: Any) -> Any:
    """Return the numba signature and the code generator of an intrinsic that copies one number of `size` bytes between two
    addresses.
    """

    def generate(ctx: Any, b: ir.IRBuilder, _: Any, arguments: list[Any]) -> Any:
        kind = ir.IntType(8 * size.literal_value)
        b.store(b.load(address(b, arguments[1], I64(0), kind)), address(b, arguments[2], I64(0), kind))
        return ctx.get_dummy_value()

    return types.void(size, types.int64, types.int64), generate


#: Called in kernels with all arguments but the first, the typing context.
move: Any = intrinsic(prefer_literal=True)(_move_code)
