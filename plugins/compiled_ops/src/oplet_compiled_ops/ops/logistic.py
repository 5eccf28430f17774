"""LOGISTIC, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.logistic import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration
from oplet_compiled_ops.softmax import LOGISTIC

REGISTRATION = map_registration(BUILTIN, {TensorType.FLOAT32: LOGISTIC}, (TensorType.INT8, TensorType.UINT8, TensorType.INT16))
