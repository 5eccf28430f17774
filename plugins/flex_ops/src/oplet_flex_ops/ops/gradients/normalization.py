"""Gradients of FusedBatchNorm and of local response normalization. Numerics: tensorflow/core/kernels/fused_batch_norm_op.cc, lrn_op.cc."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.operands import ensure_same_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Step, operator
from oplet_flex_ops.ops.arithmetic.normalization import batch_norm, channel_axis, ensure_statistics
from oplet_flex_ops.ops.arithmetic.softmax import lrn_sums


def _batch_norm(version: int) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        gradient, source, *statistics = node.inputs
        ensure(gradient.shape == source.shape, f"{source} and its gradient {gradient} must have the same shape.")
        channels = ensure_statistics(node, attributes, first=len(node.inputs), source=1)
        for each in statistics[:3]:
            ensure(each.shape == (channels,), f"{each} must have one value for each of the {channels} channels of {source}.")
        return [source.shape, (channels,), (channels,), (), ()]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        gradient, source, scale, mean, variance = inputs[:5]
        axis = channel_axis(attributes) % source.ndim
        others = tuple(each for each in range(source.ndim) if each != axis)
        wide = tuple(-1 if each == axis else 1 for each in range(source.ndim))
        epsilon = np.float32(attributes.number("epsilon", default=float(np.float32(1e-4))))
        training = attributes.flag("is_training", default=True)
        count = np.float32(prod(source.shape[each] for each in others))

        def run() -> None:
            inverse = 1 / np.sqrt(variance + epsilon)
            centred = source - mean.reshape(wide)
            sums = gradient.sum(others)
            products = (gradient * centred).sum(others)
            outputs[1][...], outputs[2][...] = products * inverse, sums
            result = gradient
            if training:
                slope = (products / count * inverse * inverse).reshape(wide)
                result = gradient - (sums / count).reshape(wide) - centred * slope
            np.multiply(result, (scale * inverse).reshape(wide), outputs[0])
            outputs[3][...] = outputs[4][...] = 0  # of no use on a CPU

        return run

    scale = "T" if version == 1 else "FLOAT32"
    return batch_norm(f"T, T, {scale}, U, U{', U' * (version == 3)} -> T, U, U, U, U", shapes, version)(formula)


def _lrn_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_same_shape(*node.inputs)
    ensure(node.inputs[0].ndim == 4, f"{node.inputs[0]} must have four dimensions.")
    return [node.inputs[0].shape]


@operator("T=FLOAT32, T, T -> T", _lrn_shapes, T=(TensorType.FLOAT16, TensorType.FLOAT32))
def LRNGRAD(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Compute the gradient, from the output's gradient, the input and the output."""
    (gradient, source, result), [output] = inputs, outputs
    radius = attributes.integer("depth_radius", default=5, least=0)
    alpha, beta = attributes.number("alpha", default=1.0), attributes.number("beta", default=0.5)
    places = np.arange(source.shape[-1])
    high, low = np.minimum(places + radius + 1, len(places)), np.maximum(places - radius, 0)

    def run() -> None:
        sums = lrn_sums(attributes, source)
        totals = np.zeros((*source.shape[:-1], source.shape[-1] + 1))
        np.cumsum(gradient * result / sums, -1, out=totals[..., 1:])
        around = totals[..., high] - totals[..., low]
        np.copyto(output, gradient * sums ** np.float32(-beta) - 2 * alpha * beta * source * around, "unsafe")

    return run


FUSEDBATCHNORMGRAD = _batch_norm(1)
FUSEDBATCHNORMGRADV2 = _batch_norm(2)
FUSEDBATCHNORMGRADV3 = _batch_norm(3)
