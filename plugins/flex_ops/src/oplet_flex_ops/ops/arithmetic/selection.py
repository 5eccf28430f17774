"""Operators that choose, clip, add up or convert values of several operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.operands import ensure_same_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.elementwise import same_shape
from oplet_flex_ops.numerics.operator import Signature, operator
from oplet_flex_ops.numerics.types import COMPLEX, EVERY, FLOATS, NUMBERS, SIGNED

_VALUES = (*EVERY, TensorType.STRING)


def _add_n() -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure_same_shape(*node.inputs)
        return [node.inputs[0].shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Thunk:
        (first, *others), [output] = inputs, outputs

        def run() -> None:
            np.copyto(output, first)
            for other in others:
                np.add(output, other, output)

        return run

    return operator(Signature(["N*T"], ["T"], {"T": NUMBERS}), shapes, formula)


def _clip_by_value() -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        values, *bounds = node.inputs
        for bound in bounds:
            fits = bound.shape in ((), values.shape)
            ensure(fits, f"{bound} is a bound of {values}; it must be a scalar or of the same shape.")
        return [values.shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Thunk:
        [values, low, high], [output] = inputs, outputs

        def run() -> None:
            np.minimum(values, high, out=output)
            np.maximum(output, low, out=output)

        return run

    types = (*FLOATS, *COMPLEX, *SIGNED, TensorType.UINT8, TensorType.UINT16)
    return operator(Signature(["T", "T", "T"], ["T"], {"T": types}), shapes, formula)


def _select() -> Registration:
    """Select, whose condition is of the operands' shape, a scalar, or a vector that chooses whole rows."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        condition, first, second = node.inputs
        ensure_same_shape(first, second)
        fits = condition.shape in ((), first.shape) or (condition.ndim == 1 and condition.shape == first.shape[:1])
        ensure(fits, f"{condition} is the condition of {first}; it must be a scalar, a vector of its rows or of the same shape.")
        return [first.shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Thunk:
        [condition, first, second], [output] = inputs, outputs
        if condition.ndim == 1:
            condition = condition.reshape(condition.shape + (1,) * (first.ndim - 1))

        def run() -> None:
            np.copyto(output, second)
            np.copyto(output, first, where=condition)

        return run

    return operator(Signature([TensorType.BOOL, "T", "T"], ["T"], {"T": _VALUES}), shapes, formula, widened={})


def _select_v2() -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        given = [tensor.shape for tensor in node.inputs]
        rank = max(map(len, given))
        columns = zip(*[(1,) * (rank - len(shape)) + shape for shape in given])
        result = []
        for sizes in columns:
            others = {size for size in sizes if size != 1}
            ensure(len(others) < 2, f"the operands do not broadcast: {', '.join(map(repr, node.inputs))}.")
            result.append(others.pop() if others else 1)
        return [tuple(result)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Thunk:
        [condition, first, second], [output] = inputs, outputs

        def run() -> None:
            np.copyto(output, second)
            np.copyto(output, first, where=condition)

        return run

    return operator(Signature([TensorType.BOOL, "T", "T"], ["T"], {"T": _VALUES}), shapes, formula, widened={})


def _cast() -> Registration:
    """Cast: floats are truncated towards zero, complex numbers give their real part, and what is not 0 is true."""

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Thunk:
        [source], [output] = inputs, outputs
        truncated = attributes.flag("Truncate", default=False)
        short = output.dtype.itemsize == 2 and output.dtype.kind not in "iu"
        if output.dtype == np.bool_:
            return lambda: np.not_equal(source, np.zeros((), source.dtype), output)
        if source.dtype.kind == "c" and output.dtype.kind != "c":
            source = source.real
        if not short or source.dtype.itemsize < 4:
            return lambda: np.copyto(output, source, "unsafe")
        # By way of single precision, as Eigen converts.
        single = np.empty(source.shape, np.float32)
        dropped = 13 if output.dtype == np.float16 else 16

        def run() -> None:
            np.copyto(single, source, "unsafe")
            if truncated:
                bits = single.view(np.uint32)
                bits &= np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
            np.copyto(output, single, "unsafe")

        return run

    return operator(Signature(["SrcT"], ["DstT"], {"SrcT": EVERY, "DstT": EVERY}), same_shape, formula, widened={})


ADD_N = _add_n()
CAST = _cast()
CLIP_BY_VALUE = _clip_by_value()
SELECT = _select()
SELECT_V2 = _select_v2()
