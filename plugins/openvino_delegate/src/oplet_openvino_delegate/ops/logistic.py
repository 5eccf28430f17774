"""LOGISTIC: 1 / (1 + exp(-x))."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import unary

TRANSLATOR = unary(ov.sigmoid, newest=3, layer_of_8_bits=True)
