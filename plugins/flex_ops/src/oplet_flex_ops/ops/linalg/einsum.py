"""Einsum: Einstein summation over one or two tensors. Numerics: tensorflow/core/kernels/linalg/einsum_op_impl.h."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from oplet import Node, Registration, charge, decline, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.limits import foresee
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Step, operator
from oplet_flex_ops.numerics.types import COMPLEX, FLOATS, INDEX

_LABELS = frozenset(string.ascii_letters)
#: Seconds of a multiplication, and of a part of them.
_SECONDS, _PART = 1e-9, 0.05


def _parts(attributes: Attributes, inputs: int) -> tuple[list[str], str]:
    """Parse the equation; return the operands' and the result's subscripts."""
    equation = attributes.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    operands = left.split(",")
    ensure(arrow and len(operands) == inputs, f"the equation '{equation:.60}' does not state {inputs} operands and a result.")
    for labels in (*operands, right):
        plain = labels.replace("...", "", 1)
        ensure(set(plain) <= _LABELS, f"the equation '{equation:.60}' holds other than letters and one '...' for each operand.")
    unknown = set(right) - set(left)
    ensure(
        not unknown, f"the result of the equation '{equation:.60}' has labels that no operand has: {''.join(sorted(unknown))}."
    )
    plain = right.replace("...", "")
    if len(set(plain)) < len(plain):
        decline(f"numpy's einsum cannot repeat a label in the result, as the equation '{equation:.60}' does.")
    return operands, right


def _shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure(len(node.inputs) <= 2, f"Einsum has {len(node.inputs)} operands; it takes one or two.")
    operands, result = _parts(attributes, len(node.inputs))
    sizes: dict[str, int] = {}
    batch: Shape = ()
    for labels, tensor in zip(operands, node.inputs):
        plain = labels.replace("...", "")
        free = tensor.ndim - len(plain)
        ensure(free == 0 or (free > 0 and "..." in labels), f"{tensor} does not have the dimensions '{labels}'.")
        before = labels.index("...") if "..." in labels else len(labels)
        named = tensor.shape[:before] + tensor.shape[before + free :]
        for label, size in zip(plain, named):
            known = sizes.setdefault(label, size)
            ensure(known == size, f"the label '{label}' stands for sizes {known} and {size}, of {tensor}.")
        middle = tensor.shape[before : before + free]
        fits = all(m == n or 1 in (m, n) for m, n in zip(batch[::-1], middle[::-1]))
        ensure(fits, f"the dimensions '...' of {tensor} do not broadcast.")
        batch = np.broadcast_shapes(batch, middle)
    ensure("..." in result or not batch, "the result must have '...' where an operand has dimensions there.")
    before = result.index("...") if "..." in result else len(result)
    plain = result.replace("...", "")
    return [(*(sizes[label] for label in plain[:before]), *batch, *(sizes[label] for label in plain[before:]))]


def _formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    operands, result = _parts(attributes, len(inputs))
    if any("..." in labels for labels in operands):
        operands, result = _plain(operands, result, inputs)
    sizes = {label: size for labels, array in zip(operands, inputs) for label, size in zip(labels, array.shape) if size != 1}
    inner = {label for label in sizes if label not in result}
    whole = _Sum(operands, result, tuple(inputs), {**dict.fromkeys("".join(operands), 1), **sizes}, inner)
    return lambda: np.copyto(outputs[0], whole.of(whole.operands))


def _plain(operands: Sequence[str], result: str, inputs: Sequence[Array]) -> tuple[list[str], str]:
    """Return the subscripts with letters of their own in place of the dots."""
    ranks = [array.ndim - len(labels.replace("...", "")) if "..." in labels else 0 for labels, array in zip(operands, inputs)]
    free = [label for label in string.ascii_letters if label not in "".join([*operands, result])][: max(ranks)]
    named = "".join(free)
    ensure(len(free) == max(ranks), f"the equation has {max(ranks)} dimensions '...', for which there are not enough letters.")
    given = [labels.replace("...", named[len(named) - rank :]) for labels, rank in zip(operands, ranks)]
    return given, result.replace("...", named)


class _Sum(NamedTuple):
    """An equation on arrays.

    Attributes:
        labels: the letters of each operand's dimensions.
        result: the letters of the result's.
        operands: the operands.
        sizes: the size of each letter.
        inner: the letters that are summed over.
    """

    labels: Sequence[str]
    result: str
    operands: tuple[Array, ...]
    sizes: Mapping[str, int]
    inner: set[str]

    def of(self, operands: tuple[Array, ...]) -> Array:
        """Return the result of operands of these sizes, by halves where it takes long."""
        foresee(0)
        equation = f"{','.join(self.labels)}->{self.result}"
        longest = max(
            self.sizes, key=lambda label: (self.sizes[label] > 1, label not in self.inner, self.sizes[label]), default=""
        )
        if _SECONDS * prod(self.sizes.values()) <= _PART or self.sizes.get(longest, 1) < 2:
            found: Array = np.einsum(equation, *operands, optimize=True)
            return found
        middle = self.sizes[longest] // 2
        halves = []
        for part, size in ((slice(0, middle), middle), (slice(middle, None), self.sizes[longest] - middle)):
            given = tuple(
                array[
                    tuple(
                        part if label == longest and size_of != 1 else slice(None) for label, size_of in zip(labels, array.shape)
                    )
                ]
                for labels, array in zip(self.labels, operands)
            )
            halves.append(self._replace(sizes={**self.sizes, longest: size}).of(given))
        if longest in self.inner:
            return np.add(*halves)
        charge(2 * sum(half.nbytes for half in halves))
        return np.concatenate(halves, self.result.index(longest))


def _registration() -> Registration:
    return operator("N*T -> T", _shapes, T=(*FLOATS, *COMPLEX, *INDEX))(_formula)


EINSUM = _registration()
