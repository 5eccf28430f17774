"""SUB: differences."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet.schema.options import SubOptions
from oplet_openvino_delegate.elementwise import broadcasting

TRANSLATOR = broadcasting(ov.subtract, newest=5, options=SubOptions, layer_of_8_bits=True)
