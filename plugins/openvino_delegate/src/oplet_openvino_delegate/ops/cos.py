"""COS: cosines."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary

TRANSLATOR = unary(ov.cos, newest=1)
