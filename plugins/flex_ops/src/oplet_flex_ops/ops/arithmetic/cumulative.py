"""Sums, products and logarithms of sums along an axis, each up to its place.

`exclusive` leaves out the place itself, `reverse` begins at the other end. Numerics: tensorflow/core/kernels/scan_ops.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import resolve_axis
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Signature, operator
from oplet_flex_ops.numerics.types import FLOATS, INDEX, NUMBERS


def _scan(ufunc: np.ufunc, types: Sequence[TensorType], start: float) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        source, axis = node.inputs
        ensure(axis.size == 1 and axis.ndim == 0, f"{axis} is the axis; it must be a scalar.")
        ensure(source.ndim >= 1, f"{source} has no axis to go along.")
        return [source.shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Thunk:
        (source, axis), [output] = inputs, outputs
        exclusive, reverse = attributes.flag("exclusive", default=False), attributes.flag("reverse", default=False)

        def run() -> None:
            along = resolve_axis(axis.item(), source.ndim)
            given, made = np.moveaxis(source, along, 0), np.moveaxis(output, along, 0)
            if reverse:
                given, made = given[::-1], made[::-1]
            if exclusive:
                made[:1] = start
                given, made = given[:-1], made[1:]
            if len(given):
                ufunc.accumulate(given, 0, output.dtype, made)

        return run

    signature = Signature(["T", "Tidx"], ["T"], {"T": types, "Tidx": INDEX}, {"Tidx": TensorType.INT32})
    return operator(signature, shapes, formula)


CUMPROD = _scan(np.multiply, NUMBERS, 1)
CUMSUM = _scan(np.add, NUMBERS, 0)
CUMULATIVE_LOGSUMEXP = _scan(np.logaddexp, FLOATS, -np.inf)
