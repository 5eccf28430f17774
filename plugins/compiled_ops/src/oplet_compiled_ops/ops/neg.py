"""NEG, compiled: float32 and integers."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.neg import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.maps.functions import NEGATIVE
from oplet_compiled_ops.elementwise.maps.one_operand import map_registration
from oplet_compiled_ops.elementwise.maps.plain_maps import SIGNED, map_kernels

REGISTRATION = map_registration(BUILTIN, {TensorType.FLOAT32: NEGATIVE, **map_kernels("negative", SIGNED)})
