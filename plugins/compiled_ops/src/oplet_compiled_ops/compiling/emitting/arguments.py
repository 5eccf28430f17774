"""Calling convention of compiled kernels: arguments are read from an array of int64 slots that `Entry.pack` writes."""

from __future__ import annotations

from typing import Any

from numba.core import types as numba_types
from numba.np.arrayobj import make_array, populate_array

from oplet_compiled_ops.compiling.emitting.vectors import F64, I64, address

types: Any = numba_types

__all__ = ["contiguous", "unpacked"]


def unpacked(context: Any, builder: Any, kinds: tuple[Any, ...], base: Any) -> list[Any]:
    """Emit LLVM IR that reads arguments of the given numba types from int64 slots at the address `base`; return numba's values."""
    position = 0

    def word() -> Any:
        nonlocal position
        position += 1
        return builder.load(address(builder, base, I64(8 * (position - 1)), I64))

    def value(kind: Any) -> Any:
        if isinstance(kind, types.Array):
            return contiguous(context, builder, kind, word(), [word() for _ in range(kind.ndim)])
        if isinstance(kind, types.Float):
            return context.cast(builder, builder.bitcast(word(), F64), types.float64, kind)
        return context.cast(builder, word(), types.int64, kind)

    return [value(kind) for kind in kinds]


def contiguous(context: Any, builder: Any, kind: Any, start: Any, shape: list[Any]) -> Any:
    """Emit LLVM IR that builds numba's value for a C-contiguous array of the numba type `kind`.

    `start` (the address of its first element) and the lengths in `shape` are int64 values of LLVM IR.
    """
    array = make_array(kind)(context, builder)
    item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [I64(item)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(start, context.get_data_type(kind.dtype).as_pointer())
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=item, meminfo=None)
    return array._getvalue()
