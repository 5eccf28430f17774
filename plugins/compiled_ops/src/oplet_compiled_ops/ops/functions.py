"""Functions of one operand, compiled: some of float32 only where it is small, as numpy's are as fast; quantized numbers by look-up table."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.elementwise import functions as builtin
from oplet_compiled_ops.elementwise.maps import functions
from oplet_compiled_ops.elementwise.maps.one_operand import FEW, map_registration
from oplet_compiled_ops.elementwise.maps.plain_maps import FLOATS, SIGNED, map_kernels

_QUANTIZED = (TensorType.INT8, TensorType.INT16)
_SIGN_TYPES = {TensorType.FLOAT32: "f4", TensorType.FLOAT64: "f8", TensorType.INT32: "i4"}

ABS = map_registration(builtin.ABS, map_kernels("absolute", {**FLOATS, **SIGNED}), _QUANTIZED)
CEIL = map_registration(builtin.CEIL, map_kernels("ceil", FLOATS))
COS = map_registration(builtin.COS, {TensorType.FLOAT32: functions.COS})
EXP = map_registration(builtin.EXP, map_kernels("exp", FLOATS), _QUANTIZED, most=FEW)
FLOOR = map_registration(builtin.FLOOR, map_kernels("floor", FLOATS))
LOG = map_registration(builtin.LOG, map_kernels("log", FLOATS), _QUANTIZED, most=FEW)
LOGICAL_NOT = map_registration(builtin.LOGICAL_NOT, map_kernels("is_zero", {TensorType.BOOL: "u1"}))
NEG = map_registration(builtin.NEG, map_kernels("negative", {**FLOATS, **SIGNED}))
ROUND = map_registration(builtin.ROUND, map_kernels("rint", FLOATS))
RSQRT = map_registration(builtin.RSQRT, {TensorType.FLOAT32: functions.INVERSE_ROOT}, _QUANTIZED, positive=True)
SIGN = map_registration(builtin.SIGN, map_kernels("sign", _SIGN_TYPES))
SIN = map_registration(builtin.SIN, {TensorType.FLOAT32: functions.SIN})
SQRT = map_registration(builtin.SQRT, map_kernels("root", FLOATS), _QUANTIZED, positive=True)
SQUARE = map_registration(builtin.SQUARE, map_kernels("square", FLOATS))
