"""GREATER_EQUAL of floats, as LESS_EQUAL with swapped operands: OpenVINO 2026.4's GreaterEqual is true for NaN."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import comparison
from oplet_openvino_delegate.graph import Value


def make(x: Value, y: Value) -> Value:
    """Return the OpenVINO node that computes GREATER_EQUAL."""
    return ov.less_equal(y, x)


TRANSLATOR = comparison(make)
