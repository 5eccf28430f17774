"""Kernels that go through arrays from the first element to the last, or row by row: their parts are slices."""

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
    """Whether several threads need less time for the elements of an op than a thread of numpy, which starts to run sooner."""
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
    """Compile a kernel of arrays of one row, and have it called with slices of the tensors and with the constants.

    Args:
        columns: of which slices have a multiple.
        worth: how many elements are worth a part of their own.
        bits: the type of number that kernels are to see in all tensors, where it is not the tensor's own.
        over: the kernel for an output that lies in the first tensor's memory, which then is not among its arguments.
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
