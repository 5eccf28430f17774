"""LOGICAL_AND, compiled: bool."""

from __future__ import annotations

from oplet_builtin_ops.ops.logical_and import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.plain.plain_pairs import AND, logical_registration

REGISTRATION = logical_registration(BUILTIN, AND)
