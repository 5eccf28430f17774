"""GREATER of floats, as LESS with swapped operands: OpenVINO 2026.4's Greater is true for NaN."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import comparison
from oplet_openvino_delegate.graph import Value


def make(x: Value, y: Value) -> Value:
    """Return the OpenVINO node that computes GREATER."""
    return ov.less(y, x)


TRANSLATOR = comparison(make)
