"""Integer arithmetic and logic of two unquantized operands, the second of which may broadcast.

Models with loops count, compare and combine single numbers, for which a numpy call would take longer than the rest of an
iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, Registration, Tensor, TensorType
from oplet.schema.enums import ActivationFunctionType
from oplet_compiled_ops.elementwise.flat import pair_of
from oplet_compiled_ops.elementwise.plain import (
    DIFFERENCE,
    DIFFERENCE_FROM,
    LARGER,
    PRODUCT,
    SHIFTED,
    SHIFTED_BY,
    SMALLER,
    SUM,
    XOR,
)
from oplet_compiled_ops.elementwise.plain.broadcasting import Operands
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut_pair
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = [
    "AND",
    "DIFFERENCE",
    "HOW",
    "INTEGERS",
    "LARGER",
    "OR",
    "PRODUCT",
    "SHIFTED",
    "SHORT",
    "SIGNED",
    "SMALLER",
    "SUM",
    "XOR",
    "arguments",
    "integer_registration",
    "logical_registration",
    "looped",
    "plan_integers",
    "plan_pair",
    "seen",
    "sum_kernel",
]

AND, OR = range(2)
#: The integers that are computed with, wrapping around.
INTEGERS = {TensorType.INT32: "i4", TensorType.INT64: "i8"}
SIGNED = {TensorType.INT8: "i1", TensorType.INT16: "i2", **INTEGERS}
SHORT = {
    TensorType.INT8: "i1",
    TensorType.UINT8: "u1",
    TensorType.INT16: "i2",
    TensorType.UINT16: "u2",
    TensorType.INT32: "i4",
    TensorType.UINT32: "u4",
}
_EXCHANGED = {DIFFERENCE: DIFFERENCE_FROM, SHIFTED: SHIFTED_BY}
#: The bounds of activations of integers; None where the type's own number is the bound.
_CLAMPS: dict[ActivationFunctionType, tuple[int, int | None]] = {
    ActivationFunctionType.RELU: (0, None),
    ActivationFunctionType.RELU_N1_TO_1: (-1, 1),
    ActivationFunctionType.RELU6: (0, 6),
}
#: The arguments of a kernel that tell how the second operand repeats.
HOW = "i8, i8, i8, i8, i8"

_inlined: Any = inlined(inline="always", error_model="numpy", boundscheck=False)


@_inlined
def _shifted(x, y, bits):  # type: ignore[no-untyped-def]
    # Amounts are compared as integers of the type, and bounded as numbers of 64 bits.
    amount = 0 if y < 0 else (bits - 1 if y > bits - 1 else np.int64(y))
    return x >> amount


@_inlined
def _computed(op, x, y, bits):  # type: ignore[no-untyped-def]
    if op == 0:
        return x + y
    if op == 1:
        return x - y
    if op == 2:
        return y - x
    if op == 3:
        return x * y
    if op == 4:
        return y if y > x else x
    if op == 5:
        return y if y < x else x
    if op == 6:
        return x ^ y
    if op == 7:
        return _shifted(x, y, bits)
    return _shifted(y, x, bits)


@_inlined
def _combined(op, x, y, bits):  # type: ignore[no-untyped-def]
    return x & y if op == 0 else x | y


_RULES = {"computed": _computed, "combined": _combined}


def _members() -> Iterator[tuple[str, int, str, str]]:
    computed = [
        *product((SUM, DIFFERENCE, DIFFERENCE_FROM, PRODUCT), ("i2", *INTEGERS.values())),
        *product((LARGER, SMALLER), ("u1", *SIGNED.values())),
        *product((XOR, SHIFTED, SHIFTED_BY), SHORT.values()),
    ]
    yield from (("computed", op, code, code) for op, code in computed)
    yield from (("combined", op, "u1", "u1") for op in (AND, OR))


def looped(name: str, value: Any, op: int, code: str) -> Callable[..., None]:
    """Return the function of a kernel that calls the inlined function `value` for each element: with `op`, the elements of `x` and of
    `y`, which broadcasts over `x`, and the bits of their type, whose name is `code` in numba's notation.
    """
    bits = 8 * int(code[1:])

    def pairs(x, y, out, blocks, rows, columns, advance, per_row):  # type: ignore[no-untyped-def]
        for block in range(blocks):
            for row in range(rows):
                start = (block * rows + row) * columns
                if per_row != 0:
                    one = y[block * advance + row]
                    for i in range(columns):
                        out[start + i] = value(op, x[start + i], one, bits)
                else:
                    first = block * advance
                    for i in range(columns):
                        out[start + i] = value(op, x[start + i], y[first + i], bits)

    pairs.__name__ = name
    return pairs


@family(_members)
def _kernel(rule: str, op: int, code: str, result: str) -> Kernel:
    """Build the kernel of a binary operation on `x` and `y`, which broadcasts over `x`.

    `rule` is "computed" for arithmetic, "combined" for logic; `code` and `result` are numba's names of the operands' and outputs'
    types.
    """
    return Kernel(looped(f"{rule}_{op}", _RULES[rule], op, code), f"void({code}[::1], {code}[::1], {result}[::1], {HOW})")


@family(lambda: [("i2",), ("i4",), ("i8",)])
def _bounding_kernel(code: str) -> Kernel:
    """Build the kernel that clamps integers of a type in place, which computes a fused activation; `code` is numba's name of the
    type.
    """

    def bound(out, low, high):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = min(max(np.int64(out[i]), low), high)

    return Kernel(bound, f"void({code}[::1], i8, i8)")


@family(lambda: [("f4",), ("i4",)])
def sum_kernel(code: str) -> Kernel:
    """Build the kernel out = x + y of flat arrays of one type (`code` in numba's notation); `out` may be one of the other two."""

    def add(x, y, out):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = x[i] + y[i]

    return Kernel(add, f"void({code}[::1], {code}[::1], {code}[::1])")


def seen(tensor: Tensor, bits: str | None = None) -> Any:
    """Return a tensor's values as a flat array for kernels: viewed as the dtype `bits`, or if that is None in its own (BOOL as bytes)."""
    array = flat(tensor.data)
    return array.view("u1" if bits is None else bits) if bits or tensor.type is TensorType.BOOL else array


def arguments(x: Any, y: Any, out: Any, found: Operands, threads: int) -> list[tuple[Any, ...]]:
    """Return a binary kernel's arguments for each of the parts that `threads` threads share: slices of the arrays, then the
    pattern.

    `x` is the operand of the output's shape, `y` the one that broadcasts over it as `found` says; all three arrays are flat.
    """
    return [
        (x[slice(*whole)], y[slice(*some)], out[slice(*whole)], part.blocks, part.rows, part.columns, part.advance, part.per_row)
        for part, whole, some in cut_pair(found[2], threads, WORTH_VALUES)
    ]


def plan_pair(context: Context, node: Node, found: Operands, before: Callable[[], Sequence[Step]], kernel: Kernel) -> Bind:
    """Plan a binary node, given what `pair_of` returns, and its kernel, which takes `arguments`."""
    ready(kernel)

    def bind() -> Thunk:
        parts = arguments(seen(found[0]), seen(found[1]), seen(node.outputs[0]), found, context.num_threads)
        return thunk([*before(), Step(kernel, parts)], context.num_threads)

    return bind


def logical_registration(builtin: Registration, op: int) -> Registration:
    """Build the registration of LOGICAL_AND or LOGICAL_OR."""

    def plan(context: Context, node: Node) -> Bind:
        return plan_pair(context, node, *pair_of(context, node), _kernel("combined", op, "u1", "u1"))

    return override(builtin, plan, NodeLimits(inputs=[[TensorType.BOOL]]))


def plan_integers(
    context: Context, node: Node, op: int, code: str, activation: ActivationFunctionType = ActivationFunctionType.NONE
) -> Bind:
    """Plan a binary node of unquantized integers; results wrap around, and are then clamped by the fused activation.

    Args:
        op: the operation, one of this module's constants.
        code: the operands' type in numba's notation.
    """
    found, before = pair_of(context, node)
    chosen = _EXCHANGED.get(op, op) if found[3] else op
    kernel, bounding = _kernel("computed", chosen, code, code), _bounding_kernel(code)
    if activation not in _CLAMPS:
        return plan_pair(context, node, found, before, kernel)
    low, high = _CLAMPS[activation]
    most = int(np.iinfo(node.outputs[0].dtype).max) if high is None else high
    ready(kernel, bounding)

    def bind() -> Thunk:
        out = seen(node.outputs[0])
        parts = arguments(seen(found[0]), seen(found[1]), out, found, context.num_threads)
        bounds = [(part[2], low, most) for part in parts]
        return thunk([*before(), Step(kernel, parts), Step(bounding, bounds)], context.num_threads)

    return bind


def integer_registration(builtin: Registration, op: int, codes: Mapping[TensorType, str]) -> Registration:
    """Build the registration of a binary operation on unquantized integers, without activation.

    Args:
        op: the operation, one of this module's constants.
        codes: the types that are served, in numba's notation.
    """

    def plan(context: Context, node: Node) -> Bind:
        return plan_integers(context, node, op, codes[node.inputs[0].type])

    return override(builtin, plan, NodeLimits(inputs=[list(codes)]))
