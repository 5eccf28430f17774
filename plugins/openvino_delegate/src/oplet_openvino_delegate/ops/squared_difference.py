"""SQUARED_DIFFERENCE: (x - y) squared."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import broadcasting

TRANSLATOR = broadcasting(ov.squared_difference, newest=1)
