"""RELU: max(x, 0)."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary

TRANSLATOR = unary(ov.relu, newest=1)
