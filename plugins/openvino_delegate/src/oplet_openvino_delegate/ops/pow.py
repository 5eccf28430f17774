"""POW: powers."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import broadcasting

TRANSLATOR = broadcasting(ov.power, newest=1)
