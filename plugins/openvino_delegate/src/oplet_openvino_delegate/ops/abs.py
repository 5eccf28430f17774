"""ABS: absolute values."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary

TRANSLATOR = unary(ov.absolute, newest=1, layer_of_8_bits=True)
