"""2D convolutions of NHWC images. Numerics: tensorflow/core/kernels/conv_ops.cc, depthwise_conv_op.cc.

Halves are added up in single precision.
"""

from __future__ import annotations

from collections.abc import Sequence

from oplet import Node, Registration, TensorType
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Signature, Step, operator
from oplet_flex_ops.numerics.planes import (
    Plane,
    convolution,
    depthwise,
    dilations_of,
    ensure_filters,
    ensure_planes,
    plane_of,
)
from oplet_flex_ops.numerics.types import FLOATS


def _registration(*, separate: bool) -> Registration:
    def plane(attributes: Attributes, source: Shape, filters: Shape) -> Plane:
        return plane_of(attributes, source, filters[:2], attributes.integers("strides"), dilations_of(attributes))

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure_planes(*node.inputs)
        source, filters = (tensor.shape for tensor in node.inputs)
        ensure_filters(node, source, filters, separate=separate)
        results = filters[2] * filters[3] if separate else filters[3]
        return [(source[0], *plane(attributes, source, filters).out, results)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        (source, filters), [output] = inputs, outputs
        windows = plane(attributes, source.shape, filters.shape)
        if separate:
            return depthwise(windows, source, filters, output, "output")
        return convolution(windows, source, filters, output)

    types = FLOATS if separate else (*FLOATS, TensorType.INT32)
    return operator(Signature(["T", "T"], ["T"], {"T": types}), shapes, formula)


CONV2D = _registration(separate=False)
DEPTHWISECONV2DNATIVE = _registration(separate=True)
