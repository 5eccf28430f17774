"""Kernels of ARG_MAX and ARG_MIN, of TOPK_V2 for short rows, and of SCATTER_ND for rows that are added to zeros."""

from __future__ import annotations

from itertools import product
from math import prod

from oplet import Node, TensorType, decline
from oplet.kernels.axes import read_int, resolve_axis
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["ARG_MAX", "POSITIONS", "SCATTER", "VALUES", "plan_search", "search_kernel", "top_kernel"]

#: The types of values, and of positions, in numba's notation.
VALUES = {
    TensorType.FLOAT32: "f4",
    TensorType.INT8: "i1",
    TensorType.UINT8: "u1",
    TensorType.INT16: "i2",
    TensorType.INT32: "i4",
    TensorType.INT64: "i8",
}
POSITIONS = {TensorType.INT16: "i2", TensorType.INT32: "i4", TensorType.INT64: "i8"}


def _arg_max(x, out):  # type: ignore[no-untyped-def]
    for row in range(x.shape[0]):
        values = x[row]
        found = 0
        best = values[0]
        for i in range(1, values.size):
            # The first of equal values; a NaN only if there is nothing else.
            better = (values[i] > best) | ((best != best) & (values[i] == values[i]))
            best = values[i] if better else best
            found = i if better else found
        out[row] = found


def _scatter(places, slices, out, first, last):  # type: ignore[no-untyped-def]
    if first == 0:
        for row in range(out.shape[0]):
            for i in range(out.shape[1]):
                out[row, i] = 0
    for k in range(first, last):
        source, target = slices[k], out[places[k]]
        for i in range(target.size):
            target[i] += source[i]


@family(lambda: product((False, True), VALUES.values(), POSITIONS.values()))
def search_kernel(least: bool, code: str, at: str) -> Kernel:
    """Build the ARG_MIN (if `least`) or ARG_MAX kernel along the middle axis: (outer, length, inner) becomes (outer, inner).

    `code` and `at` are numba's names of the types of the values and of the positions.
    """

    def search(x, out, length, inner):  # type: ignore[no-untyped-def]
        for place in range(out.size):
            start = place // inner * length * inner + place % inner
            found = 0
            best = x[start]
            for i in range(1, length):
                value = x[start + i * inner]
                better = value < best if least else value > best
                # The first of equal values; a NaN only if there is nothing else.
                if better or (best != best and value == value):
                    best = value
                    found = i
            out[place] = found

    return Kernel(search, f"void({code}[::1], {at}[::1], i8, i8)")


@family(lambda: product(VALUES.values(), POSITIONS.values()))
def top_kernel(code: str, at: str) -> Kernel:
    """Build the TOPK_V2 kernel: each row's `k` largest values in descending order, and their positions.

    `code` and `at` are numba's names of the types of the values and of the positions.
    """

    def top(x, values, places, length, k):  # type: ignore[no-untyped-def]
        for row in range(x.size // length):
            source, best, where = (
                x[row * length : (row + 1) * length],
                values[row * k : (row + 1) * k],
                places[row * k : (row + 1) * k],
            )
            for i in range(length):
                value = source[i]
                # It goes before those that it is larger than; a NaN is the smallest.
                place = min(i, k)
                while place > 0 and (value > best[place - 1] or (best[place - 1] != best[place - 1] and value == value)):
                    if place < k:
                        best[place], where[place] = best[place - 1], where[place - 1]
                    place -= 1
                if place < k:
                    best[place], where[place] = value, i

    return Kernel(top, f"void({code}[::1], {code}[::1], {at}[::1], i8, i8)")


_CODES = {TensorType.FLOAT32: "f4", TensorType.INT8: "i1", TensorType.UINT8: "u1", TensorType.INT32: "i4"}
_POSITIONS = {TensorType.INT32: "i4", TensorType.INT64: "i8"}
#: By the type of the input and that of the output.
ARG_MAX = {
    (type, position): Kernel(_arg_max, f"void({code}[:,::1], {at}[::1])")
    for type, code in _CODES.items()
    for position, at in _POSITIONS.items()
}
#: By the type of the updates: adds the slices `first` to `last`, after setting the output to zeros if these are the first ones.
SCATTER = {type: Kernel(_scatter, f"void(i8[::1], {code}[:,::1], {code}[:,::1], i8, i8)") for type, code in _CODES.items()}
#: The most numbers that ARG_MIN, or ARG_MAX along another axis than the last, is computed of here; for more, numpy is faster.
_FEW = 1 << 12


def plan_search(node: Node, least: bool) -> Bind:
    """Plan an ARG_MIN (if `least`) or ARG_MAX node of few numbers; decline others, for which numpy's kernel is faster."""
    source, output = node.inputs[0], node.outputs[0]
    if not 0 < source.size <= _FEW or source.type not in VALUES or output.type not in POSITIONS:
        decline("numpy is faster for so many numbers, or they are of another kind.")
    axis = resolve_axis(read_int(node.inputs[1]), source.ndim)
    kernel = search_kernel(least, VALUES[source.type], POSITIONS[output.type])
    ready(kernel)
    inner = prod(source.shape[axis + 1 :])
    return lambda: thunk([Step(kernel, [(flat(source.data), flat(output.data), source.shape[axis], inner)])])
