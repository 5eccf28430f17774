"""HARD_SWISH: x * relu6(x + 3) / 6."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary

TRANSLATOR = unary(ov.hswish, newest=1, layer_of_8_bits=True)
