"""FLOOR_MOD, compiled: float32 and integers."""

from __future__ import annotations

from oplet import TensorType
from oplet_builtin_ops.ops.floor_mod import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.plain.divisions import REMAINDER, divided_registration
from oplet_compiled_ops.elementwise.plain.plain_pairs import SIGNED

REGISTRATION = divided_registration(BUILTIN, REMAINDER, {TensorType.FLOAT32: "f4", **SIGNED})
