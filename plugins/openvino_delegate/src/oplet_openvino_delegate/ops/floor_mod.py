"""FLOOR_MOD: the remainder of a floored division, with the divisor's sign."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import broadcasting

TRANSLATOR = broadcasting(ov.floor_mod, newest=1)
