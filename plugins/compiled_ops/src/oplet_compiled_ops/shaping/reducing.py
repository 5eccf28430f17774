"""Reductions over adjacent axes by comparison, integer product or logic: (outer, reduced, inner) becomes (outer, inner)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from oplet import Context, Node, NodeLimits, Registration, TensorType, decline
from oplet.kernels.axes import read_ints, resolve_axis
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = [
    "ALL",
    "ANY",
    "BOOLS",
    "INTEGERS",
    "LARGEST",
    "NUMBERS",
    "PRODUCT",
    "SMALLEST",
    "TOTAL",
    "folded_shape",
    "plan_reduction",
    "reduction_registration",
]

LARGEST, SMALLEST, PRODUCT, ANY, ALL, TOTAL = range(6)
#: The types of a reduction.
BOOLS = {TensorType.BOOL: "u1"}
INTEGERS = {TensorType.INT32: "i4", TensorType.INT64: "i8"}
NUMBERS = {TensorType.FLOAT32: "f4", TensorType.INT8: "i1", TensorType.UINT8: "u1", TensorType.INT16: "i2", **INTEGERS}
#: The longest row of numbers that lie side by side.
_LONGEST = 64

_inlined = inlined(inline="always", error_model="numpy", boundscheck=False)


@_inlined
def _both(op, x, y):  # type: ignore[no-untyped-def]
    # Of two numbers one of which is NaN, the other one.
    if op == 0:
        larger = y if y > x else x
        return y if x != x else larger
    if op == 1:
        smaller = y if y < x else x
        return y if x != x else smaller
    if op == 2:
        return x * y
    if op == 5:
        return x + y
    if op == 3:
        return x | y
    return x & y


def _members() -> Iterator[tuple[int, str]]:
    yield from product((LARGEST, SMALLEST), NUMBERS.values())
    yield from product((PRODUCT, TOTAL), INTEGERS.values())
    yield TOTAL, "f4"
    yield from product((ANY, ALL), BOOLS.values())


@family(_members)
def reduction_kernel(op: int, code: str) -> Kernel:
    """Build the kernel that reduces (outer, reduced, inner) to (outer, inner); the middle axis must not be empty.

    Args:
        op: LARGEST, SMALLEST, PRODUCT, ANY, ALL or TOTAL.
        code: numba's name of the type of the numbers.
    """

    def reduce(x, out, reduced, inner, first, last):  # type: ignore[no-untyped-def]
        for outer in range(first, last):
            start = outer * reduced * inner
            if inner == 1:
                total = x[start]
                for i in range(start + 1, start + reduced):
                    total = _both(op, total, x[i])
                out[outer] = total
                continue
            target = out[outer * inner : (outer + 1) * inner]
            for i in range(inner):
                target[i] = x[start + i]
            for row in range(1, reduced):
                source = x[start + row * inner : start + (row + 1) * inner]
                for i in range(inner):
                    target[i] = _both(op, target[i], source[i])

    return Kernel(reduce, f"void({code}[::1], {code}[::1], i8, i8, i8, i8)")


def folded_shape(node: Node) -> tuple[int, int, int]:
    """Return a reduction's input as (outer, reduced, inner): the products of the lengths before, along and after the reduced
    axes.

    A node whose reduced axes are not neighbours, or that is empty, is declined (left to numpy's kernel).
    """
    source, output = node.inputs[0], node.outputs[0]
    if not source.size or output.is_dynamic:
        decline("there is nothing to compute.")
    axes = {resolve_axis(axis, source.ndim) for axis in read_ints(node.inputs[1]) if source.ndim}
    long = [axis for axis, length in enumerate(source.shape) if length > 1]
    reduced = [place for place, axis in enumerate(long) if axis in axes]
    if reduced and reduced[-1] - reduced[0] >= len(reduced):
        decline("its axes are not neighbours.")
    first, last = (long[reduced[0]], long[reduced[-1]]) if reduced else (source.ndim, source.ndim)
    count, inner = prod(source.shape[first : last + 1]), prod(source.shape[last + 1 :])
    return source.size // (count * inner), count, inner


def plan_reduction(context: Context, node: Node, op: int, code: str) -> Bind:
    """Plan a reduction over adjacent constant axes, `code` being numba's name of the type; decline long rows, where numpy is
    faster.
    """
    source, output = node.inputs[0], node.outputs[0]
    outer, count, inner = folded_shape(node)
    if inner == 1 and count > _LONGEST:
        decline("numpy is faster along long rows.")
    kernel = reduction_kernel(op, code)
    ready(kernel)
    ranges = cut(outer, source.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        x, y = flat(source.data), flat(output.data)
        if source.type is TensorType.BOOL:
            x, y = x.view("u1"), y.view("u1")
        return thunk([Step(kernel, each(ranges, lambda some, _: (x, y, count, inner, *some)))], context.num_threads)

    return bind


def reduction_registration(builtin: Registration, op: int, codes: Mapping[TensorType, str]) -> Registration:
    """Build the registration of a reduction over adjacent constant axes.

    Args:
        builtin: the numpy kernel's registration.
        op: LARGEST, SMALLEST, PRODUCT, ANY, ALL or TOTAL.
        codes: the types that are served, in numba's notation.
    """

    def plan(context: Context, node: Node) -> Bind:
        return plan_reduction(context, node, op, codes[node.inputs[0].type])

    return override(builtin, plan, NodeLimits(inputs=[list(codes)], constant=[1]))
