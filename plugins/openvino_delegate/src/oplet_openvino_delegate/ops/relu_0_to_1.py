"""RELU_0_TO_1: between 0 and 1."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary
from oplet_openvino_delegate.graph import Value


def make(value: Value) -> Value:
    """The operator's result."""
    return ov.clamp(value, 0.0, 1.0)


TRANSLATOR = unary(make, newest=1)
