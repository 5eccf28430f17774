"""Activation functions. Numerics: tensorflow/core/kernels/relu_op_functor.h, softplus_op.h and softsign_op.h."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Registration, TensorType
from oplet.kernels.arrays import Array
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.elementwise import same_shape, unary
from oplet_flex_ops.numerics.operator import Signature, Step, operator
from oplet_flex_ops.numerics.types import FLOATS, REAL

__all__ = ["SELU_ALPHA", "SELU_SCALE"]

#: Of Klambauer et al., "Self-normalizing neural networks" (2017).
SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def _relu(x: Array, out: Array) -> None:
    np.maximum(x, np.zeros((), x.dtype), out=out)


def _relu6(x: Array, out: Array) -> None:
    _relu(x, out)
    np.minimum(out, np.array(6, x.dtype), out=out)


def _elu(x: Array, out: Array) -> None:
    _exponential_below_zero(x, out)
    np.copyto(out, x, where=~(x < 0))


def _selu(x: Array, out: Array) -> None:
    _exponential_below_zero(x, out)
    np.multiply(out, SELU_SCALE * SELU_ALPHA, out, casting="unsafe")
    np.multiply(x, SELU_SCALE, out, where=~(x < 0), casting="unsafe")


def _exponential_below_zero(x: Array, out: Array) -> None:
    """expm1 of what is below zero, in `out` itself: a large tensor has no room for copies."""
    np.minimum(x, np.zeros((), x.dtype), out=out)
    np.expm1(out, out)


def _softplus(x: Array, out: Array) -> None:
    np.logaddexp(x, np.zeros((), x.dtype), out)


def _softsign(x: Array, out: Array) -> None:
    size = np.abs(x)
    size += 1
    np.divide(x, size, out)


def _leaky_relu() -> Registration:
    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [x], [out] = inputs, outputs
        alpha = np.array(attributes.number("alpha", default=np.float32(0.2).item())).astype(x.dtype)

        def run() -> None:
            np.multiply(x, alpha, out)
            np.copyto(out, x, where=x > 0)

        return run

    signature = Signature(["T"], ["T"], {"T": FLOATS}, {"T": TensorType.FLOAT32})
    return operator(signature, same_shape, formula)


ELU = unary(_elu, *FLOATS)
LEAKYRELU = _leaky_relu()
RELU = unary(_relu, *REAL)
RELU6 = unary(_relu6, *REAL)
SELU = unary(_selu, *FLOATS)
SOFTPLUS = unary(_softplus, *FLOATS)
SOFTSIGN = unary(_softsign, *FLOATS)
