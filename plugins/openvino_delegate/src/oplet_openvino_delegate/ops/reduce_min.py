"""REDUCE_MIN along constant axes."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.reductions import reduction

TRANSLATOR = reduction(ov.reduce_min, layer_of_8_bits=True)
