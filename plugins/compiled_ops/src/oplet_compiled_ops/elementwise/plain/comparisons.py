"""Comparisons of stored numbers; numbers of different quantizations are compared through tables of their rescaled values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, Registration, Tensor, TensorType
from oplet_builtin_ops.elementwise.comparison import scaled_values
from oplet_compiled_ops.elementwise.flat import pair_of
from oplet_compiled_ops.elementwise.plain.broadcasting import Operands
from oplet_compiled_ops.elementwise.plain.plain_pairs import HOW, SIGNED, arguments, looped, plan_pair, seen
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.library.memory import Array
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL", "comparison_registration"]

LESS, GREATER, LESS_EQUAL, GREATER_EQUAL, EQUAL, NOT_EQUAL = range(6)
_EXCHANGED = {LESS: GREATER, GREATER: LESS, LESS_EQUAL: GREATER_EQUAL, GREATER_EQUAL: LESS_EQUAL}
_CODES = {TensorType.FLOAT32: "f4", TensorType.UINT8: "u1", **SIGNED}

_inlined: Any = inlined(inline="always", error_model="numpy", boundscheck=False)


@_inlined
def _compared(op, x, y, bits):  # type: ignore[no-untyped-def]
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


@family(lambda: product(range(6), _CODES.values()))
def _kernel(op: int, code: str) -> Kernel:
    """Build the kernel that compares `x` with `y`, which broadcasts over `x`; `code` is numba's name of their type ("f4")."""
    return Kernel(looped(f"compared_{op}", _compared, op, code), f"void({code}[::1], {code}[::1], u1[::1], {HOW})")


@family(lambda: product(range(6), ("u1", "u2")))
def _scaled_kernel(op: int, bits: str) -> Kernel:
    """Build the kernel that compares quantized operands by numbers that it looks up in a table for each, by the values' bits.

    `bits` is numba's name of the unsigned type as large as the operands' ("u1").
    """

    def scaled(x, y, out, blocks, rows, columns, advance, per_row, first_table, second_table):  # type: ignore[no-untyped-def]
        for block in range(blocks):
            for row in range(rows):
                start = (block * rows + row) * columns
                first = block * advance + (row if per_row else 0)
                for i in range(columns):
                    other = second_table[y[first if per_row else first + i]]
                    out[start + i] = _compared(op, first_table[x[start + i]], other, 0)

    scaled.__name__ = f"compared_{op}_scaled"
    return Kernel(scaled, f"void({bits}[::1], {bits}[::1], u1[::1], {HOW}, i4[::1], i4[::1])")


def comparison_registration(builtin: Registration, op: int) -> Registration:
    """Build the registration of a comparison.

    Args:
        op: LESS, GREATER or another constant of this module.
    """

    def plan(context: Context, node: Node) -> Bind:
        found, before = pair_of(context, node)
        chosen = _EXCHANGED.get(op, op) if found[3] else op
        if node.prepared:
            return _plan_scaled(context, node, found, before, chosen)
        return plan_pair(context, node, found, before, _kernel(chosen, _CODES[node.inputs[0].type]))

    return override(builtin, plan, NodeLimits(inputs=[list(_CODES)]))


def _table(tensor: Tensor) -> Array:
    return scaled_values(tensor).astype(np.int32)


def _plan_scaled(context: Context, node: Node, found: Operands, before: Callable[[], Sequence[Step]], op: int) -> Bind:
    """Plan a comparison of operands with different scales or zero points, by tables of the numbers that their values are compared
    as.

    `found` are the operands, `before` returns steps to run first, which expand operands; `op` compares them in the order of
    `found`.
    """
    tables = [
        node.cached(("scaled", position, tensor.type), (), partial(_table, tensor)) for position, tensor in enumerate(node.inputs)
    ]
    if found[3]:
        tables.reverse()
    bits = f"u{node.inputs[0].dtype.itemsize}"
    kernel = _scaled_kernel(op, bits)
    ready(kernel)

    def bind() -> Thunk:
        x, y = (seen(tensor, bits) for tensor in found[:2])
        parts = arguments(x, y, seen(node.outputs[0]), found, context.num_threads)
        return thunk([*before(), Step(kernel, [(*part, *tables) for part in parts])], context.num_threads)

    return bind
