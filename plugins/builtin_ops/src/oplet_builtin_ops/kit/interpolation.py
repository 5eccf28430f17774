"""Between which inputs each output of RESIZE_BILINEAR lies, and where: in floats and in integers."""

from __future__ import annotations

from oplet_builtin_ops.shaping.interpolation import float_neighbours, integer_neighbours

__all__ = ["float_neighbours", "integer_neighbours"]
