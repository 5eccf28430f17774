"""Special functions, computed in double precision and rounded. Numerics: `oplet_flex_ops.numerics`, by public formulas."""

from __future__ import annotations

from collections.abc import Sequence

from oplet import Node, Registration
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.operands import ensure_same_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics import bessel, error_functions, gamma
from oplet_flex_ops.numerics.elementwise import IN_DOUBLE, in_parts, special
from oplet_flex_ops.numerics.gamma import betainc
from oplet_flex_ops.numerics.operator import Signature, Step, operator
from oplet_flex_ops.numerics.types import FLOATS, WIDE_FLOATS, WITH_HALF


def _betainc() -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        full = [tensor for tensor in node.inputs if tensor.shape] or node.inputs[:1]
        ensure_same_shape(*full)
        return [full[0].shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        return lambda: in_parts(betainc)(*inputs, outputs[0])

    return operator(Signature(["T", "T", "T"], ["T"], {"T": WIDE_FLOATS}), shapes, formula, widened=IN_DOUBLE)


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
BETAINC = _betainc()
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
