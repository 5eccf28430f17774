"""FLOOR_DIV: quotients, rounded down."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import broadcasting
from oplet_openvino_delegate.graph import Value


def make(x: Value, y: Value) -> Value:
    """Return the OpenVINO node that computes FLOOR_DIV."""
    return ov.floor(ov.divide(x, y))


TRANSLATOR = broadcasting(make, newest=2)
