"""DIV, MAXIMUM and MINIMUM of float32 with a broadcast second operand, in kernels of their own as few models need them. Integers:
see `plain_pairs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oplet import Context, Node, NodeLimits, Registration, TensorType
from oplet.kernels.activations import float_activation_range
from oplet.schema.enums import ActivationFunctionType
from oplet_compiled_ops.elementwise.flat import pair_of
from oplet_compiled_ops.elementwise.plain.broadcasting import Repetition
from oplet_compiled_ops.elementwise.plain.plain_pairs import SIGNED, plan_integers
from oplet_compiled_ops.library.kernels import Kernel, kernel
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut_pair
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["DIVIDE", "LARGER", "SMALLER", "other_pair_registration"]

#: Each is followed by the operation with its operands exchanged. Of two numbers, one of which is NaN, LARGER and SMALLER give the
#: second.
DIVIDE, DIVIDE_INTO, LARGER, LARGER_FIRST, SMALLER, SMALLER_FIRST = range(6)

_inlined: Callable[..., Any] = inlined(inline="never", error_model="numpy", boundscheck=False, nogil=True)


@_inlined
def _clamped(value, low, high):  # type: ignore[no-untyped-def]
    # NaN is kept.
    value = low if value < low else value
    return high if value > high else value


@_inlined
def _row(op, x, y, out, low, high):  # type: ignore[no-untyped-def]
    n = out.size
    if op == 0:
        for i in range(n):
            out[i] = _clamped(x[i] / y[i], low, high)
    elif op == 1:
        for i in range(n):
            out[i] = _clamped(y[i] / x[i], low, high)
    elif op == 2:
        for i in range(n):
            out[i] = x[i] if x[i] > y[i] else y[i]
    elif op == 3:
        for i in range(n):
            out[i] = y[i] if y[i] > x[i] else x[i]
    elif op == 4:
        for i in range(n):
            out[i] = x[i] if x[i] < y[i] else y[i]
    else:
        for i in range(n):
            out[i] = y[i] if y[i] < x[i] else x[i]


@_inlined
def _row_of_one(op, x, y, out, low, high):  # type: ignore[no-untyped-def]
    n = out.size
    if op == 0:
        for i in range(n):
            out[i] = _clamped(x[i] / y, low, high)
    elif op == 1:
        for i in range(n):
            out[i] = _clamped(y / x[i], low, high)
    elif op == 2:
        for i in range(n):
            out[i] = x[i] if x[i] > y else y
    elif op == 3:
        for i in range(n):
            out[i] = y if y > x[i] else x[i]
    elif op == 4:
        for i in range(n):
            out[i] = x[i] if x[i] < y else y
    else:
        for i in range(n):
            out[i] = y if y < x[i] else x[i]


@kernel("void(i8, f4[::1], f4[::1], f4[::1], i8, i8, i8, i8, f4, f4)")
def _other_per_row(op, x, y, out, blocks, rows, columns, advance, low, high):  # type: ignore[no-untyped-def]
    for block in range(blocks):
        for row in range(rows):
            start = (block * rows + row) * columns
            at = slice(start, start + columns)
            _row_of_one(op, x[at], y[block * advance + row], out[at], low, high)


@kernel("void(i8, f4[::1], f4[::1], f4[::1], i8, i8, i8, i8, f4, f4)")
def _other_per_column(op, x, y, out, blocks, rows, columns, advance, low, high):  # type: ignore[no-untyped-def]
    for block in range(blocks):
        first = block * advance
        for row in range(rows):
            start = (block * rows + row) * columns
            at = slice(start, start + columns)
            _row(op, x[at], y[first : first + columns], out[at], low, high)


def _kernel(how: Repetition) -> Kernel:
    return _other_per_row if how.per_row else _other_per_column


def other_pair_registration(builtin: Registration, op: int, of_integers: int | None = None) -> Registration:
    """Build the registration of DIV, MAXIMUM or MINIMUM.

    Args:
        builtin: the numpy kernel's registration.
        op: DIVIDE, LARGER or SMALLER.
        of_integers: the same operation on integers, one of `plain_pairs`'s constants; None where numpy's kernel serves integers.
    """
    codes = {} if of_integers is None else {TensorType.UINT8: "u1", **SIGNED}

    def plan(context: Context, node: Node) -> Bind:
        if of_integers is not None and node.inputs[0].type in codes:
            return plan_integers(context, node, of_integers, codes[node.inputs[0].type])
        found, before = pair_of(context, node)
        large, small, how, exchanged = found
        activation = node.prepared if isinstance(node.prepared, ActivationFunctionType) else ActivationFunctionType.NONE
        low, high = (float(bound) for bound in float_activation_range(activation))
        one = _kernel(how)
        ready(one)

        def bind() -> Thunk:
            arrays = flat(large.data), flat(small.data), flat(node.outputs[0].data)
            parts = []
            for part, whole, some in cut_pair(how, context.num_threads, WORTH_VALUES):
                x, y, out = arrays[0][slice(*whole)], arrays[1][slice(*some)], arrays[2][slice(*whole)]
                parts.append((op + exchanged, x, y, out, part.blocks, part.rows, part.columns, part.advance, low, high))
            return thunk([*before(), Step(one, parts)], context.num_threads)

        return bind

    types = [TensorType.FLOAT32, *codes]
    return override(builtin, plan, NodeLimits(inputs=[types, types]))
