"""Tolerances for the comparison of engines, by a tensor's type and by the arithmetic of its model.

Figures come from LiteRT's three ways and OpenVINO on real models: layers of floats differ by parts in a million of their tensor's
largest value, whole nets by one in ten thousand; layers of integers by a step, and float layers with integer weights by a hundredth,
since their activations are quantized in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from oplet import Node, Tensor
from oplet.errors import TensorError
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["PRESETS", "ModelKind", "Tolerance", "elementwise", "kind_of", "tolerance_for", "tolerance_named"]

_SMALL_WEIGHTS = (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2)
_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)


@dataclass(frozen=True)
class Tolerance:
    """Limits of the errors that pass a comparison."""

    name: str  #: The preset's name, or the number as text.
    #: For real numbers: the largest error as a fraction of the tensor's largest magnitude (`differences.scale_of`).
    part: float = 0.0
    #: For quantized integers: the largest error in steps of 1; None to take `part` of the largest magnitude.
    steps: float | None = 0.0
    #: The largest relative gain error of all values together, which shows systematic errors that are small for each single value;
    #: None to leave it out.
    gain: float | None = None
    #: Where this or `atol` is given, each error may be `atol + rtol * |wanted|`, and nothing else counts.
    rtol: float | None = None
    atol: float | None = None  #: See `rtol`; for integers in steps.

    def __str__(self) -> str:
        return self.name


PRESETS = {
    "strict": Tolerance("strict"),
    "float32": Tolerance("float32", 5e-4, 1.0, 5e-3),
    "float16": Tolerance("float16", 4e-3, 1.0, 5e-3),
    "int8": Tolerance("int8", 3e-2, 2.0, 5e-3),
}


class ModelKind(Enum):
    """The arithmetic of a model, by the types of its weights and activations."""

    FLOAT32 = "float weights"
    FLOAT16 = "float16 weights"
    HYBRID = "float activations and integer weights"
    INTEGER = "integer weights and activations"


def tolerance_named(text: str) -> Tolerance:
    """Return the tolerance that a command line names: a preset, or a number, the error as a fraction of the largest magnitude.

    Raises:
        TensorError: the text is neither a preset nor a number.
    """
    if text in PRESETS:
        return PRESETS[text]
    try:
        part = float(text)
    except ValueError:
        part = -1.0
    if not 0 <= part < float("inf"):
        raise TensorError(f"The tolerance '{text}' is neither one of {', '.join(PRESETS)} nor a number of at least 0.")
    return Tolerance(f"{part:g}", part, None)


def elementwise(rtol: float | None, atol: float | None) -> Tolerance:
    """Make a tolerance that judges each value separately: its error may be `atol + rtol * |wanted|`."""
    rtol, atol = rtol or 0.0, atol or 0.0
    return Tolerance(f"rtol {rtol:g}, atol {atol:g}", rtol=rtol, atol=atol)


def kind_of(nodes: Iterable[Node]) -> ModelKind:
    """Return the arithmetic of a model by its nodes; the least accurate kind where they differ."""
    found = {ModelKind.FLOAT32}
    for node in nodes:
        read = [tensor for tensor in node.inputs if tensor is not None]
        if any(tensor.type is TensorType.FLOAT16 for tensor in (*read, *node.outputs)):
            found.add(ModelKind.FLOAT16)
        if not read or node.op in (BuiltinOperator.DEQUANTIZE, BuiltinOperator.QUANTIZE):
            continue
        integers = [tensor for tensor in read if tensor.type in _SMALL_WEIGHTS and tensor.is_constant and _has_scale(tensor)]
        if integers and any(tensor.type is TensorType.FLOAT32 for tensor in node.outputs):
            found.add(ModelKind.HYBRID)
        if any(tensor.type in _QUANTIZED and _has_scale(tensor) for tensor in node.outputs):
            found.add(ModelKind.INTEGER)
    order = (ModelKind.HYBRID, ModelKind.INTEGER, ModelKind.FLOAT16)
    return next((kind for kind in order if kind in found), ModelKind.FLOAT32)


def tolerance_for(dtype: np.dtype[Any], quantized: bool, kind: ModelKind) -> Tolerance:
    """Return the preset tolerance for a tensor's type in a model of this kind.

    Args:
        dtype: the tensor's dtype. Strings, booleans and integers that are not quantized must be equal with every preset.
        quantized: whether the tensor is quantized.
        kind: the arithmetic of its model, see `kind_of`.
    """
    if dtype.kind in "iu":
        return PRESETS["int8" if quantized else "strict"]
    if kind in (ModelKind.HYBRID, ModelKind.INTEGER):
        return PRESETS["int8"]
    return PRESETS["float16" if kind is ModelKind.FLOAT16 or dtype.itemsize == 2 else "float32"]


def _has_scale(tensor: Tensor) -> bool:
    return tensor.quantization is not None and bool(tensor.quantization.scales.size)
