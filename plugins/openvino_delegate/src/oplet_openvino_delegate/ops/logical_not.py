"""LOGICAL_NOT of bools."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import TensorType
from oplet_openvino_delegate.elementwise import unary

TRANSLATOR = unary(ov.logical_not, types=(TensorType.BOOL,))
