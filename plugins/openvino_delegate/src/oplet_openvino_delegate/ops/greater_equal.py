"""GREATER_EQUAL of floats: LESS_EQUAL the other way round, as OpenVINO 2026.4 finds what is no number greater than anything."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import comparison
from oplet_openvino_delegate.graph import Value


def make(x: Value, y: Value) -> Value:
    """The operator's result."""
    return ov.less_equal(y, x)


TRANSLATOR = comparison(make)
