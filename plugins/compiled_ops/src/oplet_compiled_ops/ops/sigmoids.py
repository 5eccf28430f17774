"""LOGISTIC and TANH, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.elementwise import sigmoids as builtin
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration
from oplet_compiled_ops.library.kernels import Kernel

LOGISTIC_KERNEL = Kernel("softmax.exponentials:LOGISTIC", "void(f4[::1], f4[::1])")
TANH_KERNEL = Kernel("elementwise.maps.functions:TANH", "void(f4[::1], f4[::1])")
_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)

LOGISTIC = map_registration(builtin.LOGISTIC, {TensorType.FLOAT32: LOGISTIC_KERNEL}, _QUANTIZED)
TANH = map_registration(builtin.TANH, {TensorType.FLOAT32: TANH_KERNEL}, _QUANTIZED)
