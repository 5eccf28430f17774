"""Softmax and LogSoftmax along the last axis, and local response normalization across channels.

Numerics: tensorflow/core/kernels/softmax_op_functor.h and lrn_op.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, Registration, TensorType, charge, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.dense import PORTION, portions
from oplet_flex_ops.numerics.elementwise import same_shape
from oplet_flex_ops.numerics.operator import Step, operator
from oplet_flex_ops.numerics.types import FLOATS


def _softmax(*, logarithm: bool) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure(node.inputs[0].ndim >= 1, f"{node.inputs[0]} must have one dimension or more.")
        return same_shape(node, attributes)

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [logits], [output] = inputs, outputs
        if not logits.size:
            return lambda: None

        def run() -> None:
            np.subtract(logits, logits.max(-1, keepdims=True), output)
            if logarithm:
                output[...] -= np.log(np.exp(output).sum(-1, keepdims=True))
            else:
                np.exp(output, output)
                output[...] /= output.sum(-1, keepdims=True)

        return run

    return operator("T -> T", shapes, T=FLOATS)(formula)


def lrn_sums(attributes: Attributes, source: Array) -> Array:
    """Return bias + alpha * (sum of squares over the neighbouring channels), in the source's precision."""
    radius = attributes.integer("depth_radius", default=5, least=0)
    totals = np.zeros((*source.shape[:-1], source.shape[-1] + 1), np.float64)
    np.cumsum(np.square(source, dtype=np.float64), -1, out=totals[..., 1:])
    places = np.arange(source.shape[-1])
    high, low = np.minimum(places + radius + 1, len(places)), np.maximum(places - radius, 0)
    sums = totals[..., high] - totals[..., low]
    result: Array = (attributes.number("bias", default=1.0) + attributes.number("alpha", default=1.0) * sums).astype(source.dtype)
    return result


def _lrn_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure(node.inputs[0].ndim == 4, f"{node.inputs[0]} must have four dimensions.")
    return same_shape(node, attributes)


@operator("T=FLOAT32 -> T", _lrn_shapes, T=(TensorType.FLOAT16, TensorType.FLOAT32))
def LRN(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    [source], [output] = inputs, outputs
    exponent = -attributes.number("beta", default=0.5)
    charge(40 * source.shape[-1])

    def run() -> None:
        for part in portions(source.shape[:-1], max(1, PORTION // max(source.shape[-1], 1))):
            sums = lrn_sums(attributes, source[part])
            np.multiply(source[part], sums ** np.array(exponent, source.dtype), output[part])

    return run


LOGSOFTMAX = _softmax(logarithm=True)
SOFTMAX = _softmax(logarithm=False)
