"""MUL: products."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet.schema.options import MulOptions
from oplet_openvino_delegate.elementwise import broadcasting

TRANSLATOR = broadcasting(ov.multiply, newest=2, options=MulOptions)
