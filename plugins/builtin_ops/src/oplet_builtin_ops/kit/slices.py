"""`taken_axes`: the axes of which STRIDED_SLICE takes one position."""

from __future__ import annotations

from oplet_builtin_ops.ops.strided_slice import taken_axes

__all__ = ["taken_axes"]
