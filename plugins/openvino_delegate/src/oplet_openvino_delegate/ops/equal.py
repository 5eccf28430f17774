"""EQUAL of floats."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import comparison

TRANSLATOR = comparison(ov.equal)
