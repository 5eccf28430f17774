"""Matrix products, and the bias that follows them. Numerics: tensorflow/core/kernels/matmul_op_*.cc, batch_matmul_op_impl.h, bias_op.cc.

Halves are multiplied and added in single precision and rounded once; TensorFlow's own kernels differ in how often they round.

2D convolutions of NHWC images. Numerics: tensorflow/core/kernels/conv_ops.cc, depthwise_conv_op.cc.

Halves are added up in single precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.dense import multiply
from oplet_flex_ops.numerics.operator import Step, operator
from oplet_flex_ops.numerics.planes import convolution, depthwise, ensure_filters, ensure_planes, plane_of_filters
from oplet_flex_ops.numerics.types import COMPLEX, FLOATS, INDEX, NUMBERS

_TYPES = (*FLOATS, *COMPLEX, *INDEX)
_MORE = (*_TYPES, TensorType.INT16)
#: Of BatchMatMulV3, which has no kernel for float16.
_FACTORS = (TensorType.FLOAT32, TensorType.FLOAT64, TensorType.BFLOAT16, *COMPLEX, TensorType.INT16, *INDEX)
_OCTETS = (*_FACTORS, TensorType.INT8, TensorType.UINT8)


def _product(left: Shape, right: Shape, flips: tuple[bool, bool], node: Node) -> Shape:
    """Return rows and columns of a matrix product, checking the inner dimensions; `flips`: which operands are transposed."""
    rows, inner = left[-2:][:: -1 if flips[0] else 1]
    other, columns = right[-2:][:: -1 if flips[1] else 1]
    ensure(
        inner == other,
        f"the inner dimensions of {node.inputs[0]} and {node.inputs[1]} are {inner} and {other}; they must be equal.",
    )
    return rows, columns


def _thunk(x: Array, y: Array, output: Array) -> Step:
    if not x.shape[-1]:
        return lambda: output.fill(0)
    if x.dtype == y.dtype == output.dtype:
        return lambda: multiply(x, y, output)
    return lambda: multiply(x, y, output, dtype=output.dtype, casting="unsafe")


def _matmul() -> Registration:
    names = ("transpose_a", "transpose_b")

    def flips(attributes: Attributes) -> tuple[bool, bool]:
        return attributes.flag(names[0], default=False), attributes.flag(names[1], default=False)

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        for tensor in node.inputs:
            ensure(tensor.ndim == 2, f"{tensor} must be a matrix.")
        return [_product(node.inputs[0].shape, node.inputs[1].shape, flips(attributes), node)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        x, y = (array.T if flip else array for array, flip in zip(inputs, flips(attributes)))
        return _thunk(x, y, outputs[0])

    return operator("T, T -> T", shapes, T=_TYPES)(formula)


def _batch_matmul(text: str, broadcasts: bool, **types: Any) -> Registration:
    def flips(attributes: Attributes) -> tuple[bool, bool]:
        return attributes.flag("adj_x", default=False), attributes.flag("adj_y", default=False)

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        left, right = node.inputs
        for tensor in node.inputs:
            ensure(tensor.ndim >= 2, f"{tensor} must have two dimensions or more.")
        batch, other = left.shape[:-2], right.shape[:-2]
        fits = all(m == n or 1 in (m, n) for m, n in zip(batch[::-1], other[::-1])) if broadcasts else batch == other
        ensure(fits, f"the batches of {left} and {right} do not {'broadcast' if broadcasts else 'have the same shape'}.")
        return [(*np.broadcast_shapes(batch, other), *_product(left.shape, right.shape, flips(attributes), node))]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        adjoint = flips(attributes)
        x, y = (array.swapaxes(-1, -2) if flip else array for array, flip in zip(inputs, adjoint))
        if outputs[0].dtype.kind != "c" or not any(adjoint):
            return _thunk(x, y, outputs[0])

        def run() -> None:
            left, right = (np.conj(array) if flip else array for array, flip in zip((x, y), adjoint))
            _thunk(left, right, outputs[0])()

        return run

    return operator(text, shapes, **types)(formula)


def _bias_add(*, data_format: bool) -> Registration:
    def by_channels(attributes: Attributes) -> bool:
        return data_format and attributes.text("data_format", "NHWC", "NCHW", default="NHWC") == "NCHW"

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        value, bias = node.inputs
        first = by_channels(attributes)
        ensure(bias.ndim == 1, f"the bias {bias} must be a vector.")
        ensure(value.ndim >= (3 if first else 2), f"{value} has too few dimensions for a bias; it must have {3 if first else 2}.")
        channels = value.shape[1 if first else -1]
        ensure(bias.shape == (channels,), f"the bias {bias} must have one value for each of the {channels} channels of {value}.")
        return [value.shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        value, bias = inputs
        if by_channels(attributes):
            bias = bias.reshape(-1, *[1] * (value.ndim - 2))
        return lambda: np.add(value, bias, outputs[0])

    return operator("T, T -> T", shapes, T=NUMBERS)(formula)


BATCHMATMUL = _batch_matmul("T, T -> T", False, T=_TYPES)
BATCHMATMULV2 = _batch_matmul("T, T -> T", True, T=_MORE)
BATCHMATMULV3 = _batch_matmul("Ta, Tb -> Tout", True, Ta=_OCTETS, Tb=_OCTETS, Tout=_FACTORS)
BIASADD = _bias_add(data_format=True)
BIASADDV1 = _bias_add(data_format=False)
MATMUL = _matmul()


def _registration(*, separate: bool) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure_planes(*node.inputs)
        source, filters = (tensor.shape for tensor in node.inputs)
        ensure_filters(node, source, filters, separate=separate)
        results = filters[2] * filters[3] if separate else filters[3]
        return [(source[0], *plane_of_filters(attributes, source, filters).out, results)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        (source, filters), [output] = inputs, outputs
        windows = plane_of_filters(attributes, source.shape, filters.shape)
        if separate:
            return depthwise(windows, source, filters, output, "output")
        return convolution(windows, source, filters, output)

    types = FLOATS if separate else (*FLOATS, TensorType.INT32)
    return operator("T, T -> T", shapes, T=types)(formula)


CONV2D = _registration(separate=False)
DEPTHWISECONV2DNATIVE = _registration(separate=True)
