"""MAXIMUM, element by element."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import broadcasting

TRANSLATOR = broadcasting(ov.maximum, newest=5, layer_of_8_bits=True)
