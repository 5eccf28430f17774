"""SQUARE: x * x."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary
from oplet_openvino_delegate.graph import Value


def make(value: Value) -> Value:
    """Return the OpenVINO node that computes SQUARE."""
    return ov.multiply(value, value)


TRANSLATOR = unary(make, newest=1)
