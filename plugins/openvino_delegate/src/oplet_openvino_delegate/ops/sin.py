"""SIN: sines."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary

TRANSLATOR = unary(ov.sin, newest=1)
