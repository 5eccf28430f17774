"""Elementwise functions of one operand. Numerics: tensorflow/core/kernels/cwise_ops.h.

Special functions, computed in double precision and rounded. Numerics: `oplet_flex_ops.numerics`, by public formulas.

Activation functions. Numerics: tensorflow/core/kernels/relu_op_functor.h, softplus_op.h and softsign_op.h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.operands import ensure_same_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics import bessel, error_functions, gamma
from oplet_flex_ops.numerics.elementwise import IN_DOUBLE, in_parts, same_shape, special, unary
from oplet_flex_ops.numerics.gamma import betainc
from oplet_flex_ops.numerics.operator import Step, operator, writing
from oplet_flex_ops.numerics.types import COMPLEX, FLOATS, INDEX, INTEGERS, REAL, SIGNED, UNSIGNED, WIDE_FLOATS, WITH_HALF

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
ISFINITE = unary(np.isfinite, *FLOATS, result="BOOL")
ISINF = unary(np.isinf, *FLOATS, result="BOOL")
ISNAN = unary(np.isnan, *FLOATS, result="BOOL")
LOG = unary(np.log, *_ANALYTIC)
LOG1P = unary(np.log1p, *_ANALYTIC)
LOGICALNOT = operator("BOOL -> BOOL", same_shape)(writing(np.logical_not))
NEG = unary(np.negative, *_ANALYTIC, *SIGNED)
POPULATIONCOUNT = unary(_count_bits, *INTEGERS, result="UINT8")
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


def _betainc_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    full = [tensor for tensor in node.inputs if tensor.shape] or node.inputs[:1]
    ensure_same_shape(*full)
    return [full[0].shape]


BETAINC = operator("T, T, T -> T", _betainc_shapes, widened=IN_DOUBLE, T=WIDE_FLOATS)(writing(in_parts(betainc)))


BESSELI0 = special(bessel.i0, *WITH_HALF)
BESSELI0E = special(bessel.i0e, *WITH_HALF)
BESSELI1 = special(bessel.i1, *WITH_HALF)
BESSELI1E = special(bessel.i1e, *WITH_HALF)
BESSELJ0 = special(bessel.j0, *WITH_HALF)
BESSELJ1 = special(bessel.j1, *WITH_HALF)
BESSELK0 = special(bessel.k0, *WITH_HALF)
BESSELK0E = special(bessel.k0e, *WITH_HALF)
BESSELK1 = special(bessel.k1, *WITH_HALF)
BESSELK1E = special(bessel.k1e, *WITH_HALF)
BESSELY0 = special(bessel.y0, *WITH_HALF)
BESSELY1 = special(bessel.y1, *WITH_HALF)
DAWSN = special(error_functions.dawsn, *WIDE_FLOATS)
DIGAMMA = special(gamma.digamma, *WITH_HALF)
ERF = special(error_functions.erf, *FLOATS)
ERFC = special(error_functions.erfc, *FLOATS)
ERFINV = special(error_functions.erfinv, *WIDE_FLOATS)
EXPINT = special(error_functions.expint, *WIDE_FLOATS)
FRESNELCOS = special(error_functions.fresnel_cos, *WIDE_FLOATS)
FRESNELSIN = special(error_functions.fresnel_sin, *WIDE_FLOATS)
IGAMMA = special(gamma.igamma, *WIDE_FLOATS, operands=2)
IGAMMAC = special(gamma.igammac, *WIDE_FLOATS, operands=2)
LGAMMA = special(gamma.lgamma, *WITH_HALF)
NDTRI = special(error_functions.ndtri, *WIDE_FLOATS)
POLYGAMMA = special(gamma.polygamma, *WIDE_FLOATS, operands=2)
SPENCE = special(error_functions.spence, *WIDE_FLOATS)
ZETA = special(gamma.zeta, *WIDE_FLOATS, operands=2)


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


def leaky(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Return the step of LeakyRelu, or of its gradient: the first input, times alpha where the last one (the same, or the features) is
    not positive.
    """
    x, features, out = inputs[0], inputs[-1], outputs[0]
    alpha = np.array(attributes.number("alpha", default=np.float32(0.2).item())).astype(x.dtype)

    def run() -> None:
        np.multiply(x, alpha, out)
        np.copyto(out, x, where=features > 0)

    return run


ELU = unary(_elu, *FLOATS)
LEAKYRELU = operator("T=FLOAT32 -> T", same_shape, T=FLOATS)(leaky)
RELU = unary(_relu, *REAL)
RELU6 = unary(_relu6, *REAL)
SELU = unary(_selu, *FLOATS)
SOFTPLUS = unary(_softplus, *FLOATS)
SOFTSIGN = unary(_softsign, *FLOATS)
