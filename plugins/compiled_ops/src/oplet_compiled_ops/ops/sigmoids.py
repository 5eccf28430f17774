"""LOGISTIC and TANH, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.elementwise import sigmoids as builtin
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration
from oplet_compiled_ops.elementwise.maps.plain_maps import FLOATS, map_kernels
from oplet_compiled_ops.softmax import LOGISTIC as LOGISTIC_KERNEL

_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)

LOGISTIC = map_registration(builtin.LOGISTIC, {TensorType.FLOAT32: LOGISTIC_KERNEL}, _QUANTIZED)
TANH = map_registration(builtin.TANH, map_kernels("tanh", FLOATS), _QUANTIZED)
