"""Two operands without scales, the second of which may be broadcast: comparisons, arithmetic of integers, and logic.

Loops of recurrent nets count, compare and combine single numbers, for which a call of numpy takes longer than all the rest.
"""

from __future__ import annotations

from typing import Any

from oplet import Context, Node, NodeLimits, Registration, Tensor, TensorType, decline
from oplet_numba_ops.broadcasting import Operands, operands
from oplet_numba_ops.compiling.kernels import Kernel, family
from oplet_numba_ops.compiling.lazy import inlined
from oplet_numba_ops.compiling.memory import flat
from oplet_numba_ops.overriding import Bind, Thunk, override
from oplet_numba_ops.threads.splitting import WORTH_VALUES, cut_pair
from oplet_numba_ops.threads.team import Step, ready, thunk

__all__ = [
    "AND",
    "DIFFERENCE",
    "EQUAL",
    "GREATER",
    "GREATER_EQUAL",
    "INTEGERS",
    "LESS",
    "LESS_EQUAL",
    "NOT_EQUAL",
    "OR",
    "PRODUCT",
    "QUOTIENT",
    "REMAINDER",
    "SUM",
    "comparison_registration",
    "divided_registration",
    "logical_registration",
    "plan_integers",
]

#: Comparisons.
LESS, GREATER, LESS_EQUAL, GREATER_EQUAL, EQUAL, NOT_EQUAL = range(6)
#: Arithmetic; the difference is followed by that with its operands exchanged.
SUM, DIFFERENCE, DIFFERENCE_FROM, PRODUCT, QUOTIENT, REMAINDER = range(6)
AND, OR = range(2)
#: The integers that are computed with, wrapping around.
INTEGERS = {TensorType.INT32: "i4", TensorType.INT64: "i8"}
_COMPARED = {TensorType.FLOAT32: "f4", **INTEGERS}
_EXCHANGED_COMPARISON = {LESS: GREATER, GREATER: LESS, LESS_EQUAL: GREATER_EQUAL, GREATER_EQUAL: LESS_EQUAL}
_EXCHANGED = {DIFFERENCE: DIFFERENCE_FROM}

_inlined: Any = inlined(inline="always", error_model="numpy", boundscheck=False)


@_inlined
def _compared(op, x, y):  # type: ignore[no-untyped-def]
    if op == 0:
        return x < y
    if op == 1:
        return x > y
    if op == 2:
        return x <= y
    if op == 3:
        return x >= y
    if op == 4:
        return x == y
    return x != y


@_inlined
def _computed(op, x, y):  # type: ignore[no-untyped-def]
    if op == 0:
        return x + y
    if op == 1:
        return x - y
    if op == 2:
        return y - x
    if op == 3:
        return x * y
    if op == 4:
        return x // y
    return x % y


@_inlined
def _combined(op, x, y):  # type: ignore[no-untyped-def]
    return x & y if op == 0 else x | y


_RULES = {"compared": _compared, "computed": _computed, "combined": _combined}


@family
def _kernel(rule: str, op: int, code: str, result: str) -> Kernel:
    """The kernel of an operation; arguments as of `Repetition`."""
    value = _RULES[rule]

    def pairs(x, y, out, blocks, rows, columns, advance, per_row):  # type: ignore[no-untyped-def]
        for block in range(blocks):
            for row in range(rows):
                start = (block * rows + row) * columns
                if per_row != 0:
                    one = y[block * advance + row]
                    for i in range(columns):
                        out[start + i] = value(op, x[start + i], one)
                else:
                    first = block * advance
                    for i in range(columns):
                        out[start + i] = value(op, x[start + i], y[first + i])

    pairs.__name__ = f"{rule}_{op}"
    return Kernel(pairs, f"void({code}[::1], {code}[::1], {result}[::1], i8, i8, i8, i8, i8)")


def _plan(context: Context, node: Node, found: Operands | None, kernel: Kernel, bits: Any = None) -> Bind:
    if found is None:
        decline("its operand repeats in a way that its loops do not know, or there is nothing to compute.")
    large, small, how, _ = found
    ready(kernel)

    def seen(tensor: Tensor) -> Any:
        array = flat(tensor.data)
        return array.view("u1") if tensor.type is TensorType.BOOL else array

    def bind() -> Thunk:
        x, y, out = seen(large), seen(small), seen(node.outputs[0])
        parts = [
            (
                x[slice(*whole)],
                y[slice(*some)],
                out[slice(*whole)],
                part.blocks,
                part.rows,
                part.columns,
                part.advance,
                part.per_row,
            )
            for part, whole, some in cut_pair(how, context.num_threads, WORTH_VALUES)
        ]
        return thunk([Step(kernel, parts)], context.num_threads)

    return bind


def comparison_registration(builtin: Registration, op: int) -> Registration:
    """The registration of a comparison of numbers without scales."""

    def plan(context: Context, node: Node) -> Bind:
        found = operands(node)
        exchanged = found is not None and found[3]
        chosen = _EXCHANGED_COMPARISON.get(op, op) if exchanged else op
        return _plan(context, node, found, _kernel("compared", chosen, _COMPARED[node.inputs[0].type], "u1"))

    return override(builtin, plan, NodeLimits(inputs=[list(_COMPARED)]))


def logical_registration(builtin: Registration, op: int) -> Registration:
    """The registration of LOGICAL_AND or LOGICAL_OR."""

    def plan(context: Context, node: Node) -> Bind:
        return _plan(context, node, operands(node), _kernel("combined", op, "u1", "u1"))

    return override(builtin, plan, NodeLimits(inputs=[[TensorType.BOOL]]))


def plan_integers(context: Context, node: Node, op: int, found: Operands | None) -> Bind:
    """Plan a node of integers, which wrap around."""
    if found is None:
        decline("its operand repeats in a way that its loops do not know, or there is nothing to compute.")
    chosen = _EXCHANGED.get(op, op) if found[3] else op
    code = INTEGERS[found[0].type]
    return _plan(context, node, found, _kernel("computed", chosen, code, code))


def divided_registration(builtin: Registration, op: int) -> Registration:
    """The registration of FLOOR_DIV or FLOOR_MOD of int32, by constants above 0, by which no division fails."""

    def plan(context: Context, node: Node) -> Bind:
        divisors = node.inputs[1]
        if not divisors.is_constant or not divisors.size or int(divisors.data.min()) < 1:
            decline("its divisors are not constants above 0.")
        found = operands(node)
        if found is not None and found[3]:
            decline("its divisors have the output's shape, and the dividends repeat.")
        return plan_integers(context, node, op, found)

    return override(builtin, plan, NodeLimits(inputs=[[TensorType.INT32]], constant=[1]))
