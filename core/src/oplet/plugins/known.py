"""Which pip package brings an operator that nothing installed serves; only for advice in messages."""

from __future__ import annotations

from typing import Final

from oplet.ops.composite import Composite
from oplet.ops.resolver import Op

__all__ = ["BUILTIN_OPS", "known_distribution"]

#: The package that brings the format's built-in operators.
BUILTIN_OPS: Final = "oplet-builtin-ops"

_MEDIAPIPE: Final = "oplet-mediapipe-ops"

_CUSTOM: Final = {
    "Atan": "oplet-atan-op",
    "Convolution2DTransposeBias": _MEDIAPIPE,
    "Landmarks2TransformMatrix": _MEDIAPIPE,
    "MaxPoolingWithArgmax2D": _MEDIAPIPE,
    "MaxUnpooling2D": _MEDIAPIPE,
    "TransformLandmarks": _MEDIAPIPE,
    "TransformTensor": _MEDIAPIPE,
    "TransformTensorBilinear": _MEDIAPIPE,
}

#: Families of custom ops that share the start of their names.
_PREFIXES: Final = {"Signal": "oplet-signal-ops"}


#: Composites that the package of the built-in operators serves.
_COMPOSITES: Final = frozenset({"odml.scaled_dot_product_attention"})


def known_distribution(op: Op) -> str:
    """The pip package that is known to bring `op`, "" if none is."""
    if isinstance(op, Composite):
        return BUILTIN_OPS if op.name in _COMPOSITES else ""
    if not isinstance(op, str):
        return BUILTIN_OPS
    if op in _CUSTOM:
        return _CUSTOM[op]
    return next((package for prefix, package in _PREFIXES.items() if op.startswith(prefix)), "")
