"""MUL: products."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet.schema.options import MulOptions
from oplet_openvino_delegate.elementwise import broadcasting

TRANSLATOR = broadcasting(ov.multiply, newest=5, options=MulOptions, layer_of_8_bits=True)
