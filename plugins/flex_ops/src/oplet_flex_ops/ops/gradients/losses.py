"""Cross entropies of softmax with their gradients, a row at a time. Numerics: tensorflow/core/kernels/xent_op.h, sparse_xent_op.h."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.broadcasting import broadcast_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Signature, Step, operator
from oplet_flex_ops.numerics.types import FLOATS, INDEX


def _log_softmax(features: Array) -> Array:
    shifted = features - features.max(-1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return result


def _dense() -> Registration:
    """Build SoftmaxCrossEntropyWithLogits: labels are probabilities; features and labels broadcast."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        for tensor in node.inputs:
            ensure(tensor.ndim <= 2, f"{tensor} must have at most two dimensions, a row for each example.")
        shape = broadcast_shape(*node.inputs)
        ensure(
            len(shape) == 2 and shape[1] > 0, f"{node.inputs[0]} and {node.inputs[1]} must make a matrix with one class or more."
        )
        return [shape[:1], shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        (features, labels), (loss, gradient) = inputs, outputs

        def run() -> None:
            logarithms = np.broadcast_to(_log_softmax(np.broadcast_to(features, gradient.shape)), gradient.shape)
            # What has no probability counts nothing, also where its logarithm is infinite.
            np.negative(np.where(labels == 0, 0, labels * logarithms).sum(-1), loss)
            np.subtract(np.exp(logarithms), labels, gradient)

        return run

    return operator(Signature(["T", "T"], ["T", "T"], {"T": FLOATS}), shapes, formula)


def _sparse() -> Registration:
    """Build SparseSoftmaxCrossEntropyWithLogits: labels are class numbers."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        features, labels = node.inputs
        ensure(features.ndim == 2 and features.shape[1] > 0, f"{features} must be a matrix with one class or more.")
        ensure(labels.shape == features.shape[:1], f"{labels} must have one label for each row of {features}.")
        return [labels.shape, features.shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
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

    types = {"T": FLOATS, "Tlabels": INDEX}
    return operator(Signature(["T", "Tlabels"], ["T", "T"], types, {"Tlabels": TensorType.INT64}), shapes, formula)


SOFTMAXCROSSENTROPYWITHLOGITS = _dense()
SPARSESOFTMAXCROSSENTROPYWITHLOGITS = _sparse()
