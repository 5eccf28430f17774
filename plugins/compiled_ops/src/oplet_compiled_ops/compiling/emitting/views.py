"""Reshaped views of contiguous arrays."""

from __future__ import annotations

from typing import Any

from numba.core import types as numba_types
from numba.extending import intrinsic

from oplet_compiled_ops.compiling.emitting.arguments import contiguous
from oplet_compiled_ops.compiling.emitting.vectors import I64

types: Any = numba_types  # it has no types

__all__ = ["shaped"]


def _shaped_code(context: Any, array: Any, shape: Any) -> Any:
    """Return the signature and generator of an intrinsic that gives a C-contiguous array another shape, without a copy."""
    result = types.Array(array.dtype, len(shape), "C")

    def generate(ctx: Any, builder: Any, signature: Any, arguments: list[Any]) -> Any:
        values, lengths = arguments
        start = builder.ptrtoint(builder.extract_value(values, 4), I64)
        kinds = signature.args[1]
        sizes = [ctx.cast(builder, builder.extract_value(lengths, i), kind, types.int64) for i, kind in enumerate(kinds)]
        return contiguous(ctx, builder, result, start, sizes)

    return result(array, shape), generate


#: Called in kernels with all arguments but the first, the typing context.
shaped: Any = intrinsic(_shaped_code)
