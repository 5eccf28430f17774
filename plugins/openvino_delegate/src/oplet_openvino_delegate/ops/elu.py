"""ELU: x, or exp(x) - 1 below 0."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary
from oplet_openvino_delegate.graph import Value


def make(value: Value) -> Value:
    """Return the OpenVINO node that computes ELU."""
    return ov.elu(value, 1.0)


TRANSLATOR = unary(make, newest=1)
