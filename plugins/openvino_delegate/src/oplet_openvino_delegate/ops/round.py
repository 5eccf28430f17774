"""ROUND: to the nearest integer, ties to even."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary
from oplet_openvino_delegate.graph import Value


def make(value: Value) -> Value:
    """Return the OpenVINO node that computes ROUND."""
    return ov.round(value, "half_to_even")


TRANSLATOR = unary(make, newest=1)
