"""DIV: quotients."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet.schema.options import DivOptions
from oplet_openvino_delegate.elementwise import broadcasting

TRANSLATOR = broadcasting(ov.divide, newest=5, options=DivOptions)
