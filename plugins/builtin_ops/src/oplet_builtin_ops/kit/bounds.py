"""The errors of GATHER, SLICE and STRIDED_SLICE for positions outside of their axes."""

from __future__ import annotations

from oplet_builtin_ops.shaping.bounds import box, refuse_begin, refuse_position

__all__ = ["box", "refuse_begin", "refuse_position"]
