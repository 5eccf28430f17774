"""Comparisons and logic of operands that broadcast; the results are truth values. Numerics: tensorflow/core/kernels/cwise_ops.h."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType
from oplet.errors import PrepareError
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.broadcasting import broadcast_shape
from oplet.kernels.operands import ensure_same_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.elementwise import binary, broadcast_pair
from oplet_flex_ops.numerics.operator import Step, operator, writing
from oplet_flex_ops.numerics.types import EVERY, REAL, WIDE_FLOATS

_BOOL = TensorType.BOOL


def _equality(function: np.ufunc, when_apart: bool) -> Registration:
    """Build Equal or NotEqual.

    Shapes that do not broadcast give the single value `when_apart` if the attribute `incompatible_shape_error` is false.
    """

    def apart(node: Node, attributes: Attributes) -> bool:
        if attributes.flag("incompatible_shape_error", default=True):
            return False
        try:
            broadcast_shape(*node.inputs)
        except PrepareError:
            return True
        return False

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        return [()] if apart(node, attributes) else broadcast_pair(node, attributes)

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [x, y], [out] = inputs, outputs
        if out.shape != (x.shape if x.shape == y.shape else np.broadcast(x, y).shape if _broadcasts(x, y) else None):
            return lambda: out.fill(when_apart)
        return lambda: function(x, y, out)

    return operator("T, T -> BOOL", shapes, T=(*EVERY, TensorType.STRING))(formula)


def _broadcasts(x: Array, y: Array) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(x.shape[::-1], y.shape[::-1]))


def _logic(function: np.ufunc) -> Registration:
    return operator("BOOL, BOOL -> BOOL", broadcast_pair)(writing(function))


def _approximate_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_same_shape(*node.inputs)
    return [node.inputs[0].shape]


@operator("T, T -> BOOL", _approximate_shapes, T=WIDE_FLOATS)
def APPROXIMATEEQUAL(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    tolerance = np.array(attributes.number("tolerance", default=float(np.float32(1e-5))), inputs[0].dtype)
    return lambda: np.less(np.abs(inputs[0] - inputs[1]), tolerance, outputs[0])


def _order(function: Callable[[Array, Array, Array], Any]) -> Registration:
    return binary(function, *REAL, signature="T, T -> BOOL")


EQUAL = _equality(np.equal, False)
GREATER = _order(np.greater)
GREATEREQUAL = _order(np.greater_equal)
LESS = _order(np.less)
LESSEQUAL = _order(np.less_equal)
LOGICALAND = _logic(np.logical_and)
LOGICALOR = _logic(np.logical_or)
NOTEQUAL = _equality(np.not_equal, True)
