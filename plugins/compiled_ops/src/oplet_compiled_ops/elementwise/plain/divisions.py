"""FLOOR_DIV and FLOOR_MOD: non-constant divisors are checked first, as machine code may not divide by zero."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, Registration, TensorType, decline
from oplet_builtin_ops.elementwise.pairwise import refuse_zero
from oplet_compiled_ops.elementwise.flat import pair_of
from oplet_compiled_ops.elementwise.plain.plain_pairs import arguments, seen
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.library.memory import Array
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.failing import failing
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["QUOTIENT", "REMAINDER", "divided_registration"]

QUOTIENT, REMAINDER = range(2)
#: The most numbers of a node: they are one part of work.
_MOST = 1 << 16

_inlined: Any = inlined(inline="always", error_model="numpy", boundscheck=False)


@_inlined
def _of_integers(op, x, y):  # type: ignore[no-untyped-def]
    # The lowest number divided by -1 is not a number of its type: processors trap, and the result is to wrap around.
    if op == 0:
        return -x if y == -1 else x // y
    return np.int64(0) if y == -1 else x % y


@_inlined
def _of_floats(op, x, y):  # type: ignore[no-untyped-def]
    if op == 0:
        return np.float32(np.floor(np.float64(x) / np.float64(y)))
    return x % y


@family(lambda: product((QUOTIENT, REMAINDER), (False, True), ("f4", "i1", "i2", "i4", "i8")))
def _kernel(op: int, exchanged: bool, code: str) -> Kernel:
    """Build the kernel that divides `x` by `y`, which broadcasts over `x`; or `y` by `x` if `exchanged`.

    It first looks for a zero in its argument `divisors`, which may be empty; if there is one, it sets its error flag and does no
    more.
    """
    value = _of_floats if code == "f4" else _of_integers

    def divide(x, y, out, blocks, rows, columns, advance, per_row, divisors, mark):  # type: ignore[no-untyped-def]
        for i in range(divisors.size):
            if divisors[i] == 0:
                mark[0] = 1
                return
        for block in range(blocks):
            for row in range(rows):
                start = (block * rows + row) * columns
                first = block * advance + (row if per_row else 0)
                for i in range(columns):
                    one, other = x[start + i], y[first if per_row else first + i]
                    out[start + i] = value(op, other, one) if exchanged else value(op, one, other)

    divide.__name__ = f"divide_{op}"
    return Kernel(divide, f"void({code}[::1], {code}[::1], {code}[::1], i8, i8, i8, i8, i8, {code}[::1], i8[::1])")


def divided_registration(builtin: Registration, op: int, codes: Mapping[TensorType, str]) -> Registration:
    """Build the registration of FLOOR_DIV or FLOOR_MOD.

    Args:
        builtin: the numpy kernel's registration.
        op: QUOTIENT or REMAINDER.
        codes: the types that are served, in numba's notation.
    """

    def plan(context: Context, node: Node) -> Bind:
        output, divisors = node.outputs[0], node.inputs[1]
        if output.size > _MOST:
            decline("numpy is as fast for so many numbers.")
        found, before = pair_of(context, node)
        is_float = node.inputs[0].type is TensorType.FLOAT32
        checked = op == QUOTIENT or not is_float
        if checked and divisors.is_constant and np.count_nonzero(divisors.data) < divisors.size:
            decline("it divides by zero, which numpy's kernel refuses when it runs.")
        checked = checked and not divisors.is_constant
        kernel = _kernel(op, found[3], codes[node.inputs[0].type])
        ready(kernel)

        def fail(mark: Array) -> None:
            refuse_zero(divisors)

        def bind() -> Thunk:
            mark: Array = np.zeros(1, np.int64)
            [part] = arguments(seen(found[0]), seen(found[1]), seen(output), found, 1)
            run = thunk([*before(), Step(kernel, [(*part, seen(divisors)[: divisors.size if checked else 0], mark)])])
            return failing(run, mark, fail) if checked else run

        return bind

    return override(builtin, plan, NodeLimits(inputs=[list(codes)]))
