"""Kernels over arrays from the first element to the last, or row by row, whose parts are slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oplet import Context
from oplet_numba_ops.compiling.kernels import Kernel
from oplet_numba_ops.compiling.memory import Array, address, flat
from oplet_numba_ops.overriding import Bind
from oplet_numba_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_numba_ops.threads.team import Step, ready, thunk

__all__ = ["plan_flat", "worth_sharing"]


def worth_sharing(context: Context, size: int) -> bool:
    """Whether several threads are faster than one thread of numpy, which has less overhead, for an op of so many elements."""
    return context.num_threads > 1 and size >= 2 * WORTH_VALUES


def plan_flat(
    context: Context,
    kernel: Kernel,
    tensors: Sequence[Any],
    *constants: Any,
    columns: int = 1,
    worth: int = WORTH_VALUES,
    bits: Any = None,
    over: Kernel | None = None,
) -> Bind:
    """Compile a kernel of one-dimensional arrays, and have it called with slices of the tensors and with the constants.

    Args:
        context: the kernel's context.
        kernel: the kernel.
        tensors: the tensors, inputs first.
        constants: further arguments of the kernel.
        columns: slices have a multiple of so many elements.
        worth: the least elements of a part.
        bits: the type in which kernels see all tensors, if it is not their own.
        over: the kernel for an output in the first tensor's memory, which has no argument for that tensor.
    """
    ready(kernel, *([] if over is None else [over]))
    size = tensors[0].size
    ranges = cut(size, size // worth, context.num_threads, columns)

    def bind() -> Any:
        arrays: list[Array] = [flat(tensor.data) if bits is None else flat(tensor.data).view(bits) for tensor in tensors]
        chosen = kernel
        if over is not None and address(arrays[0]) == address(arrays[-1]):
            chosen = over
            del arrays[0]
        parts = each(ranges, lambda some, _: (*(array[slice(*some)] for array in arrays), *constants))
        return thunk([Step(chosen, parts)], context.num_threads)

    return bind
