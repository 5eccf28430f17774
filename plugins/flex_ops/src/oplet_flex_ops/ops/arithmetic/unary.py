"""Elementwise functions of one operand. Numerics: tensorflow/core/kernels/cwise_ops.h."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Registration, TensorType
from oplet.kernels.arrays import Array
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.elementwise import same_shape, unary
from oplet_flex_ops.numerics.operator import Signature, Step, operator
from oplet_flex_ops.numerics.types import COMPLEX, FLOATS, INDEX, INTEGERS, SIGNED, UNSIGNED, WIDE_FLOATS

_ANALYTIC = (*FLOATS, *COMPLEX)


def _inverse(x: Array, out: Array) -> None:
    np.divide(np.ones((), x.dtype), x, out)


def _inverse_root(x: Array, out: Array) -> None:
    np.sqrt(x, out)
    _inverse(out, out)


def _round(x: Array, out: Array) -> None:
    if x.dtype.kind == "f":
        np.rint(x, out)
    else:
        np.copyto(out, x)


def _sign(x: Array, out: Array) -> None:
    if x.dtype.kind != "c":
        np.sign(x, out)
        return
    size = np.abs(x)
    np.copyto(out, 0)
    np.divide(x, size, out, where=size != 0)


def _sigmoid(x: Array, out: Array) -> None:
    np.negative(x, out)
    np.exp(out, out)
    out += 1
    _inverse(out, out)


def _count_bits(x: Array, out: Array) -> None:
    octets = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    out.reshape(-1)[...] = _BITS[octets].reshape(x.size, x.dtype.itemsize).sum(-1, dtype=np.uint8)


#: The bits that are set in each byte.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1, dtype=np.uint8)


def _logical_not() -> Registration:
    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        return lambda: np.logical_not(inputs[0], outputs[0])

    return operator(Signature([TensorType.BOOL], [TensorType.BOOL]), same_shape, formula)


ABS = unary(np.abs, *FLOATS, *SIGNED)
ACOS = unary(np.arccos, *_ANALYTIC)
ACOSH = unary(np.arccosh, *_ANALYTIC)
ASIN = unary(np.arcsin, *_ANALYTIC)
ASINH = unary(np.arcsinh, *_ANALYTIC)
ATAN = unary(np.arctan, *_ANALYTIC)
ATANH = unary(np.arctanh, *_ANALYTIC)
CEIL = unary(np.ceil, *FLOATS)
COS = unary(np.cos, *_ANALYTIC)
COSH = unary(np.cosh, *_ANALYTIC)
EXP = unary(np.exp, *_ANALYTIC)
EXPM1 = unary(np.expm1, *_ANALYTIC)
FLOOR = unary(np.floor, *FLOATS)
INV = RECIPROCAL = unary(_inverse, *_ANALYTIC)
INVERT = unary(np.invert, *INTEGERS)
ISFINITE = unary(np.isfinite, *FLOATS, result=TensorType.BOOL)
ISINF = unary(np.isinf, *FLOATS, result=TensorType.BOOL)
ISNAN = unary(np.isnan, *FLOATS, result=TensorType.BOOL)
LOG = unary(np.log, *_ANALYTIC)
LOG1P = unary(np.log1p, *_ANALYTIC)
LOGICALNOT = _logical_not()
NEG = unary(np.negative, *_ANALYTIC, *SIGNED)
POPULATIONCOUNT = unary(_count_bits, *INTEGERS, result=TensorType.UINT8)
RINT = unary(np.rint, *WIDE_FLOATS)
ROUND = unary(_round, *FLOATS, *INDEX)
RSQRT = unary(_inverse_root, *_ANALYTIC)
SIGMOID = unary(_sigmoid, *_ANALYTIC)
SIGN = unary(_sign, *_ANALYTIC, *SIGNED)
SIN = unary(np.sin, *_ANALYTIC)
SINH = unary(np.sinh, *_ANALYTIC)
SQRT = unary(np.sqrt, *_ANALYTIC)
SQUARE = unary(np.square, *_ANALYTIC, *SIGNED, *UNSIGNED)
TAN = unary(np.tan, *_ANALYTIC)
TANH = unary(np.tanh, *_ANALYTIC)
