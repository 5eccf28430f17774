"""Gradients of convolutions and of biases. Numerics: tensorflow/core/kernels/conv_grad_*_ops.cc, depthwise_conv_grad_op.cc, bias_op.cc.

Cross entropies of softmax with their gradients, a row at a time. Numerics: tensorflow/core/kernels/xent_op.h, sparse_xent_op.h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet.kernels.broadcasting import broadcast_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Step, operator, writing
from oplet_flex_ops.numerics.planes import (
    depthwise,
    ensure_filters,
    ensure_planes,
    filter_gradient,
    input_gradient,
    plane_of_filters,
)
from oplet_flex_ops.numerics.types import FLOATS, INDEX, NUMBERS


def _convolution(wanted: str, *, separate: bool) -> Registration:
    """Build a convolution's gradient with respect to one operand; the op's inputs have the shape of that operand in its place.

    Args:
        wanted: the operand, "source" or "filters".
        separate: whether the convolution is depthwise.
    """
    place = 0 if wanted == "source" else 1

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        sizes, gradient = node.inputs[place], node.inputs[2]
        ensure_planes(node.inputs[1 - place], gradient)
        ensure(sizes.shape == (4,), f"{sizes} is a shape; it must hold four sizes.")
        made = tuple(read_ints(sizes))
        ensure(min(made) > 0, f"{sizes} holds {list(made)}; the sizes must be above zero.")
        source, filters = (made, node.inputs[1].shape) if wanted == "source" else (node.inputs[0].shape, made)
        ensure_filters(node, source, filters, separate=separate)
        results = filters[2] * filters[3] if separate else filters[3]
        given = (source[0], *plane_of_filters(attributes, source, filters).out, results)
        ensure(gradient.shape == given, f"the gradient {gradient} must have the shape {list(given)} of the convolution's result.")
        return [made]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        gradient, [output] = inputs[2], outputs
        source, filters = (output, inputs[1]) if wanted == "source" else (inputs[0], output)
        windows = plane_of_filters(attributes, source.shape, filters.shape)
        if separate:
            return depthwise(windows, source, filters, gradient, wanted)
        if wanted == "source":
            return input_gradient(windows, filters, gradient, output)
        return filter_gradient(windows, source, gradient, output)

    text = "INT32!, T, T -> T" if wanted == "source" else "T, INT32!, T -> T"
    types = (*FLOATS, TensorType.INT32) if wanted == "source" and not separate else FLOATS
    return operator(text, shapes, T=types)(formula)


def _bias_axis(attributes: Attributes) -> int:
    return 1 if attributes.text("data_format", "NHWC", "NCHW", default="NHWC") == "NCHW" else -1


def _bias_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    source = node.inputs[0]
    least = 3 if _bias_axis(attributes) == 1 else 2
    ensure(source.ndim >= least, f"{source} has too few dimensions for the gradient of a bias; it must have {least}.")
    return [(source.shape[_bias_axis(attributes)],)]


@operator("T -> T", _bias_shapes, T=NUMBERS)
def BIASADDGRAD(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Sum over all axes but the channels."""
    [source], [output] = inputs, outputs
    others = tuple(each for each in range(source.ndim) if each != _bias_axis(attributes) % source.ndim)
    return lambda: np.add.reduce(source, others, output.dtype, out=output)


CONV2DBACKPROPFILTER = _convolution("filters", separate=False)
CONV2DBACKPROPINPUT = _convolution("source", separate=False)
DEPTHWISECONV2DNATIVEBACKPROPFILTER = _convolution("filters", separate=True)
DEPTHWISECONV2DNATIVEBACKPROPINPUT = _convolution("source", separate=True)


def _log_softmax(features: Array) -> Array:
    shifted = features - features.max(-1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return result


def _dense_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    for tensor in node.inputs:
        ensure(tensor.ndim <= 2, f"{tensor} must have at most two dimensions, a row for each example.")
    shape = broadcast_shape(*node.inputs)
    ensure(len(shape) == 2 and shape[1] > 0, f"{node.inputs[0]} and {node.inputs[1]} must make a matrix with one class or more.")
    return [shape[:1], shape]


@operator("T, T -> T, T", _dense_shapes, T=FLOATS)
@writing
def SOFTMAXCROSSENTROPYWITHLOGITS(features: Array, labels: Array, loss: Array, gradient: Array) -> None:
    """Compute cross entropies and gradients; labels are probabilities, features and labels broadcast."""
    logarithms = np.broadcast_to(_log_softmax(np.broadcast_to(features, gradient.shape)), gradient.shape)
    # What has no probability counts nothing, also where its logarithm is infinite.
    np.negative(np.where(labels == 0, 0, labels * logarithms).sum(-1), loss)
    np.subtract(np.exp(logarithms), labels, gradient)


def _sparse_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    features, labels = node.inputs
    ensure(features.ndim == 2 and features.shape[1] > 0, f"{features} must be a matrix with one class or more.")
    ensure(labels.shape == features.shape[:1], f"{labels} must have one label for each row of {features}.")
    return [labels.shape, features.shape]


@operator("T, Tlabels=INT64 -> T, T", _sparse_shapes, T=FLOATS, Tlabels=INDEX)
def SPARSESOFTMAXCROSSENTROPYWITHLOGITS(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Compute cross entropies and gradients; labels are class numbers."""
    (features, labels), (loss, gradient) = inputs, outputs
    rows, classes = np.arange(features.shape[0]), features.shape[1]

    def run() -> None:
        outside = (labels < 0) | (labels >= classes)
        ensure(
            not outside.any(),
            lambda: f"Received a label value of {labels[outside][0]}, outside the valid range of [0, {classes}).",
        )
        logarithms = _log_softmax(features)
        np.negative(logarithms[rows, labels], loss)
        np.exp(logarithms, gradient)
        gradient[rows, labels] -= 1

    return run
