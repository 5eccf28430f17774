"""TANH: hyperbolic tangents."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary

TRANSLATOR = unary(ov.tanh, newest=3, layer_of_8_bits=True)
