"""Planning of kernels over flat arrays, rows, or pairs of arrays of which one repeats: their work is divided among threads as slices,
and operands that broadcast irregularly are expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oplet import Context, Node, Tensor, TensorType, decline
from oplet_compiled_ops.elementwise import CODES
from oplet_compiled_ops.library.kernels import Kernel, family_of
from oplet_compiled_ops.library.memory import Array, address, flat
from oplet_compiled_ops.overriding import Bind, Thunk
from oplet_compiled_ops.shaping import AXES, COPY, SIZES, copy_arguments
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, cut_pair, each
from oplet_compiled_ops.threads.team import Step, ready, thunk

if TYPE_CHECKING:
    from oplet_compiled_ops.elementwise.plain.broadcasting import Operands, Repetition

__all__ = [
    "bind_float_pair",
    "bind_quantized_pair",
    "float_pair_kernel",
    "pair_of",
    "plan_flat",
    "quantized_pair_kernel",
    "worth_sharing",
]

#: The most numbers of a node of which operands are copied into the output's shape.
_TABLE = 1 << 16
#: Shorter rows of a pair are repeated into longer ones, so that the overhead of a loop over a row is small.
_LONG = 512


def worth_sharing(context: Context, size: int) -> bool:
    """Return whether an op of `size` elements is faster with several threads of compiled code than with numpy's kernel."""
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
    """Plan an elementwise kernel of flat arrays: find its machine code in the library, and call it on slices of the tensors, one for each
    thread's part, with the constants as further arguments.

    Args:
        context: the kernel's context.
        tensors: the tensors, inputs first, all of one size.
        constants: further arguments of the kernel.
        columns: the length of every slice is a multiple of this number.
        worth: the fewest elements of a slice for which using another thread pays off.
        bits: the dtype as which kernels see all tensors ("u1"); None for their own.
        over: the in-place kernel, without the first tensor as argument, for an output in that tensor's memory; None if there is none.
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


def _tabled(context: Context, node: Node) -> tuple[Operands, Callable[[], list[Step]]] | tuple[None, None]:
    """Return the operands of a small binary node; those that broadcast irregularly are copied into the output's shape.

    With the operands (see `Operands`) comes a function that returns the steps that make these copies, to run first; (None, None)
    if the output is empty or too large, or if an operand has more axes, or other numbers, than the copying kernel takes.
    """
    from oplet_compiled_ops.elementwise.plain.broadcasting import (  # here, as nodes of one operand have none
        Repetition,
        repetition,
    )

    output = node.outputs[0]
    if not 0 < output.size <= _TABLE or output.ndim > AXES or any(tensor.dtype.itemsize not in SIZES for tensor in node.inputs):
        return None, None
    ready(COPY)
    a, b = node.inputs
    ways = [(a, b, False), (b, a, True)]
    if a.shape[-1:] != output.shape[-1:]:
        ways.reverse()  # whole rows are copied, rather than single numbers
    for copied, other, exchanged in ways:
        how = repetition(output.shape, other.shape)
        if how is not None:
            table = context.add_temporary(node, output.shape, copied.type)
            return (table, other, how, exchanged), partial(_copy_steps, [(table, copied)])
    tables = [context.add_temporary(node, output.shape, tensor.type) for tensor in (a, b)]
    how = Repetition(1, 1, output.size, 0, False)
    return (tables[0], tables[1], how, False), partial(_copy_steps, list(zip(tables, (a, b))))


def pair_of(context: Context, node: Node) -> tuple[Operands, Callable[[], Sequence[Step]]]:
    """Return a binary node's operands (see `Operands`), and a function for the steps to run first, which expand operands; none,
    mostly.

    A node whose operands broadcast otherwise, or that is empty, is declined (left to numpy's kernel).
    """
    from oplet_compiled_ops.elementwise.plain.broadcasting import operands  # here, as nodes of one operand have none

    found, before = operands(node), None
    if found is None:
        found, before = _tabled(context, node)
    if found is None:
        decline("its operand repeats in a way that its loops do not know, or there is nothing to compute.")
    return found, before or tuple


def _copy_steps(pairs: Sequence[tuple[Tensor, Tensor]]) -> list[Step]:
    steps = []
    for table, copied in pairs:
        arguments = copy_arguments(table.data, np.broadcast_to(copied.data, table.shape))
        steps.append(Step(COPY, [cast("tuple[int, ...]", arguments)]))
    return steps


float_pair_kernel = family_of(
    "elementwise.float_pairs:float_pair_kernel",
    lambda op, per_row: "void(f4[::1], f4[::1], f4[::1], f4[::1], i8, i8, i8, i8, f4, f4)",
)


def bind_float_pair(
    op: int,
    x: Tensor,
    y: Array,
    output: Tensor,
    how: Repetition,
    low: float,
    high: float,
    threads: int,
    before: Sequence[Step] = (),
) -> Thunk:
    """Return a function that computes a binary operation on float32 operands and clamps the results.

    Args:
        op: one of the constants of `elementwise`.
        x: the operand of the output's shape; the output may be in its memory.
        y: the operand that repeats.
        how: how `y` repeats over `x`.
        low: the lower bound of the clamp, which sums, differences, products and quotients have.
        high: the upper bound of the clamp.
        threads: the threads that share the work.
        before: steps to run first, which write operands.
    """
    large, small, result = flat(x.data), flat(y), flat(output.data)
    parts = []
    for part, whole, some in cut_pair(how, threads, WORTH_VALUES):
        copies = 0 if part.per_row or part.rows == 1 or part.columns >= _LONG else min(part.rows, -(-_LONG // part.columns))
        scratch = np.empty(copies * part.columns, np.float32)
        arrays = large[slice(*whole)], small[slice(*some)], result[slice(*whole)], scratch
        parts.append((*arrays, part.blocks, part.rows, part.columns, part.advance, low, high))
    return thunk([*before, Step(float_pair_kernel(op, how.per_row), parts)], threads, x.data, *arrays)


def _kernels(path: str) -> dict[TensorType, Kernel]:
    arrays = {type: ", ".join([f"{code}[::1]"] * 4) for type, code in CODES.items()}
    return {type: Kernel(path, f"void(b1, {text}, i8[::1], i8, i8, i8, i8)") for type, text in arrays.items()}


_PER_ROW, _PER_COLUMN = _kernels("elementwise.quantized_pairs:_per_row"), _kernels("elementwise.quantized_pairs:_per_column")


def quantized_pair_kernel(how: Repetition, type: TensorType) -> Kernel:
    """Return the kernel for sums and products of quantized numbers, for a broadcasting pattern and the type of operands and
    output.
    """
    return (_PER_ROW if how.per_row else _PER_COLUMN)[type]


def bind_quantized_pair(
    product: bool,
    x: Tensor,
    y: Array,
    output: Tensor,
    how: Repetition,
    constants: Sequence[int],
    threads: int,
    before: Sequence[Step],
) -> Thunk:
    """Return a function that computes quantized ADD or SUB, or MUL if `product`.

    Args:
        product: whether it is MUL.
        x: the operand of the output's shape.
        y: the operand that repeats.
        how: how `y` repeats over `x`.
        constants: of a product the zero points of `x` and `y`, the numbers that `fixed_point.scaling` returns for it, the output's zero
            point, and its lowest and highest value. Of a sum, for `x` and for `y` the zero point, the numbers of `scaling`, and 0, or -1
            for the one that is subtracted; then for the sum what a product has from its scaling on.
        threads: the threads that share the work.
        before: steps to run first, which expand operands.
    """
    large, small, result, numbers = flat(x.data), flat(y), flat(output.data), np.array(constants, np.int64)
    parts = []
    for part, whole, some in cut_pair(how, threads, WORTH_VALUES // 2):
        short = not part.per_row and part.rows > 1 and part.columns < _LONG
        copies = min(part.rows, -(-_LONG // part.columns)) if short else 0
        scratch = np.empty(copies * part.columns, output.dtype)
        arrays = large[slice(*whole)], small[slice(*some)], result[slice(*whole)], scratch, numbers
        parts.append((product, *arrays, part.blocks, part.rows, part.columns, part.advance))
    return thunk([*before, Step(quantized_pair_kernel(how, output.type), parts)], threads)
