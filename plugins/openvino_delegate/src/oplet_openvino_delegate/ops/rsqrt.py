"""RSQRT: 1 / sqrt(x)."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary
from oplet_openvino_delegate.graph import Value


def make(value: Value) -> Value:
    """Return the OpenVINO node that computes RSQRT."""
    return ov.divide(np.float32(1), ov.sqrt(value))


TRANSLATOR = unary(make, newest=1)
