"""REDUCE_ALL along constant axes."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import TensorType
from oplet_openvino_delegate.reductions import reduction

TRANSLATOR = reduction(ov.reduce_logical_and, types=(TensorType.BOOL,))
