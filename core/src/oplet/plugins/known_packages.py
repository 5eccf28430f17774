"""Packages that are known to provide an operator, for advice in messages."""

from __future__ import annotations

from typing import Final

from oplet.ops.composite import Composite
from oplet.ops.serving.entry import Op

__all__ = ["BUILTIN_OPS", "NATIVE_OPS", "family_distribution", "known_distribution", "package_origin"]

#: The package of the built-in operators.
BUILTIN_OPS: Final = "oplet-builtin-ops"

#: The package that opens shared libraries of operators.
NATIVE_OPS: Final = "oplet-native-ops"

_MEDIAPIPE: Final = "oplet-mediapipe-ops"
_SIGNAL: Final = "oplet-signal-ops"
_FLEX_OPS: Final = "oplet-flex-ops"
_TEXT: Final = "oplet-text-ops"

#: The packages of this release by custom op. Names must match exactly: another `SignalX` is not from this project, and advice must not
#: name packages by a guess, which may belong to anybody.
_CUSTOM: Final = {
    "Atan": "oplet-atan-op",
    "AudioSpectrogram": BUILTIN_OPS,
    "Convolution2DTransposeBias": _MEDIAPIPE,
    "Landmarks2TransformMatrix": _MEDIAPIPE,
    "MaxPoolingWithArgmax2D": _MEDIAPIPE,
    "MaxUnpooling2D": _MEDIAPIPE,
    "Mfcc": BUILTIN_OPS,
    "NumericVerify": BUILTIN_OPS,
    "SignalDelay": _SIGNAL,
    "SignalEnergy": _SIGNAL,
    "SignalFftAutoScale": _SIGNAL,
    "SignalFilterBank": _SIGNAL,
    "SignalFilterBankLog": _SIGNAL,
    "SignalFilterBankSpectralSubtraction": _SIGNAL,
    "SignalFilterBankSquareRoot": _SIGNAL,
    "SignalFramer": _SIGNAL,
    "SignalIrfft": _SIGNAL,
    "SignalOverlapAdd": _SIGNAL,
    "SignalPCAN": _SIGNAL,
    "SignalRfft": _SIGNAL,
    "SignalStacker": _SIGNAL,
    "SignalWindow": _SIGNAL,
    "TFLite_Detection_PostProcess": BUILTIN_OPS,
    "TransformLandmarks": _MEDIAPIPE,
    "TransformTensor": _MEDIAPIPE,
    "TransformTensorBilinear": _MEDIAPIPE,
    "aeq.hadamard_rotation": BUILTIN_OPS,
}

#: Families of custom ops: what the names begin with, and the package that serves all of them.
_FAMILIES: Final = {"Flex": "oplet-flex-delegate", "TFText>": _TEXT}

#: The ops of TensorFlow, after "Flex", that need no TensorFlow.
_FLEX: Final = """
Cholesky
"""

#: Composites that the package of the built-in operators serves.
_COMPOSITES: Final = frozenset({"odml.group_norm", "odml.rms_norm", "odml.scaled_dot_product_attention"})


def known_distribution(op: Op) -> str:
    """The pip package that is known to provide `op`, "" if none is."""
    if isinstance(op, Composite):
        return BUILTIN_OPS if op.name in _COMPOSITES else ""
    if not isinstance(op, str):
        return BUILTIN_OPS
    if op in _CUSTOM:
        return _CUSTOM[op]
    if op.startswith("Flex") and op[4:] in _FLEX.split():
        return _FLEX_OPS
    return family_distribution(op)


def family_distribution(op: str) -> str:
    """The pip package that is known to provide all custom ops whose names begin like this one's, "" if none is."""
    return next((package for prefix, package in _FAMILIES.items() if op.startswith(prefix)), "")


def package_origin(package: str) -> str:
    """The origin of a package of this project, in words for messages."""
    folder = package.removeprefix("oplet-").replace("-", "_")
    return f"of the oplet project, on PyPI or plugins/{folder} in its repository"
