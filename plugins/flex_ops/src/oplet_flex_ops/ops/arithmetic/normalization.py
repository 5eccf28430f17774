"""FusedBatchNorm in its three versions. Numerics: tensorflow/core/kernels/fused_batch_norm_op.cc.

In training the variance for later inference has Bessel's correction, the one that gradients use has not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Formula, Shapes, Step, operator
from oplet_flex_ops.numerics.types import SHORT_FLOATS

__all__ = ["batch_norm", "channel_axis", "ensure_statistics"]

_FORMATS = ("NHWC", "NCHW", "NDHWC", "NCDHW")


def channel_axis(attributes: Attributes) -> int:
    """Return the channel axis, by the attribute `data_format`."""
    return -1 if attributes.text("data_format", *_FORMATS, default="NHWC").endswith("C") else 1


def ensure_statistics(node: Node, attributes: Attributes, *, first: int, source: int = 0) -> int:
    """Return the number of channels, after checking that inputs from position `first` on have one value per channel."""
    tensor = node.inputs[source]
    ensure(tensor.ndim in (4, 5), f"{tensor} must have four or five dimensions.")
    channels = tensor.shape[channel_axis(attributes)]
    training = attributes.flag("is_training", default=True)
    for each in node.inputs[first:]:
        # Estimates that training does not read may be empty.
        fits = each.shape == (channels,) or (training and each.shape == (0,))
        ensure(fits, f"{each} must have one value for each of the {channels} channels of {tensor}.")
    return channels


def batch_norm(text: str, shapes: Shapes, version: int) -> Callable[[Formula], Registration]:
    """Return the decorator of a FusedBatchNorm: version 1 has one type, the others may have half inputs with float32 statistics."""
    if version == 1:
        return operator(text.replace("U", "T"), shapes, T=(TensorType.FLOAT32,))
    return operator(text, shapes, T=(TensorType.FLOAT32, *SHORT_FLOATS), U=(TensorType.FLOAT32,))


def _registration(version: int) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        channels = ensure_statistics(node, attributes, first=1)
        ensure(node.inputs[1].size == node.inputs[2].size == channels, f"scale and offset must have {channels} values.")
        factor = attributes.number("exponential_avg_factor", default=1.0)
        if attributes.flag("is_training", default=True) and factor != 1:
            ensure(
                node.inputs[3].size == node.inputs[4].size == channels,
                f"the running mean and variance must have {channels} values.",
            )
        return [node.inputs[0].shape, *[(channels,)] * 4, *([()] if version == 3 else [])]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        source, scale, offset, mean, variance = inputs
        axis = channel_axis(attributes) % source.ndim
        others = tuple(each for each in range(source.ndim) if each != axis)
        wide = tuple(-1 if each == axis else 1 for each in range(source.ndim))
        epsilon = np.float32(attributes.number("epsilon", default=float(np.float32(1e-4))))
        training = attributes.flag("is_training", default=True)
        factor = np.float32(attributes.number("exponential_avg_factor", default=1.0))
        count = prod(source.shape[each] for each in others)
        correction = np.float32(count / max(count - 1, 1))

        def run() -> None:
            used_mean, used_variance = mean, variance
            if training:
                used_mean = source.mean(others, dtype=np.float32)
                used_variance = np.square(source - used_mean.reshape(wide)).mean(others)
            factors = scale / np.sqrt(used_variance + epsilon)
            np.multiply(source - used_mean.reshape(wide), factors.reshape(wide), outputs[0])
            np.add(outputs[0], offset.reshape(wide), outputs[0])
            outputs[1][...], outputs[2][...] = used_mean, used_variance * correction if training else used_variance
            if training and factor != 1:
                outputs[1][...] = (1 - factor) * mean + factor * outputs[1]
                outputs[2][...] = (1 - factor) * variance + factor * outputs[2]
            outputs[3][...], outputs[4][...] = used_mean, used_variance
            if version == 3:
                outputs[5][...] = 0

        return run

    return batch_norm(f"T, U, U, U, U -> T, U, U, U, U{', U' * (version == 3)}", shapes, version)(formula)


FUSEDBATCHNORM = _registration(1)
FUSEDBATCHNORMV2 = _registration(2)
FUSEDBATCHNORMV3 = _registration(3)
