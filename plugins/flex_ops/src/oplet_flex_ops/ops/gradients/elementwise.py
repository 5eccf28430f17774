"""Gradients of elementwise functions. Numerics: tensorflow/core/kernels/relu_op_functor.h, cwise_ops_gradients.h.

Gradients of activations take the incoming gradient first, then the activation's input or output; the others take the function's
result first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.operands import ensure_same_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.elementwise import binary
from oplet_flex_ops.numerics.operator import operator
from oplet_flex_ops.numerics.types import COMPLEX, FLOATS, REAL
from oplet_flex_ops.ops.arithmetic.unary import SELU_ALPHA, SELU_SCALE, leaky

_ANALYTIC = (*FLOATS, *COMPLEX)


def _shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_same_shape(*node.inputs)
    return [node.inputs[0].shape]


def _gradient(function: Callable[[Array, Array, Array], Any], *types: TensorType) -> Registration:
    """Build the registration of a binary gradient op; `function(left, right, result)` writes into `result`."""
    return binary(function, *types, shapes=_shapes)


def _elu(gradient: Array, activations: Array, out: Array) -> None:
    np.copyto(out, np.where(activations < 0, (activations + 1) * gradient, gradient))


def _selu(gradient: Array, activations: Array, out: Array) -> None:
    product = np.array(SELU_SCALE * SELU_ALPHA, out.dtype)
    scale = np.array(SELU_SCALE, out.dtype)
    np.copyto(out, np.where(activations < 0, gradient * (activations + product), gradient * scale))


def _softplus(gradient: Array, features: Array, out: Array) -> None:
    np.divide(gradient, np.exp(-features) + 1, out)


def _softsign(gradient: Array, features: Array, out: Array) -> None:
    np.divide(gradient, np.square(1 + np.abs(features)), out)


def _sigmoid(y: Array, dy: Array, out: Array) -> None:
    np.multiply(dy, (1 - y) * y, out)


def _tanh(y: Array, dy: Array, out: Array) -> None:
    np.multiply(dy, 1 - y * y, out)


def _sqrt(y: Array, dy: Array, out: Array) -> None:
    np.divide(dy * np.array(0.5, y.dtype), np.conj(y), out)


def _rsqrt(y: Array, dy: Array, out: Array) -> None:
    conjugate = np.conj(y)
    np.multiply(dy * np.array(-0.5, y.dtype), conjugate * conjugate * conjugate, out)


def _inverse(y: Array, dy: Array, out: Array) -> None:
    conjugate = np.conj(y)
    np.multiply(-dy, conjugate * conjugate, out)


ELUGRAD = _gradient(_elu, *FLOATS)
INVGRAD = RECIPROCALGRAD = _gradient(_inverse, *_ANALYTIC)
LEAKYRELUGRAD = operator("T=FLOAT32, T -> T", _shapes, T=FLOATS)(leaky)
RELU6GRAD = _gradient(lambda g, x, out: np.multiply(g, (x > 0) & (x < 6), out), *REAL)
RELUGRAD = _gradient(lambda g, x, out: np.multiply(g, x > 0, out), *REAL)
RSQRTGRAD = _gradient(_rsqrt, *_ANALYTIC)
SELUGRAD = _gradient(_selu, *FLOATS)
SIGMOIDGRAD = _gradient(_sigmoid, *_ANALYTIC)
SOFTPLUSGRAD = _gradient(_softplus, *FLOATS)
SOFTSIGNGRAD = _gradient(_softsign, *FLOATS)
SQRTGRAD = _gradient(_sqrt, *_ANALYTIC)
TANHGRAD = _gradient(_tanh, *_ANALYTIC)
