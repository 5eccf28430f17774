"""LOGICAL_OR, compiled: bool."""

from __future__ import annotations

from oplet_builtin_ops.ops.logical_or import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.plain.plain_pairs import OR, logical_registration

REGISTRATION = logical_registration(BUILTIN, OR)
