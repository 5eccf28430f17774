"""ADD: sums."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet.schema.options import AddOptions
from oplet_openvino_delegate.elementwise import broadcasting

TRANSLATOR = broadcasting(ov.add, newest=5, options=AddOptions, layer_of_8_bits=True)
