"""Source positions and weights of each output pixel of RESIZE_BILINEAR."""

from __future__ import annotations

from oplet_builtin_ops.shaping.interpolation import float_neighbours, integer_neighbours

__all__ = ["float_neighbours", "integer_neighbours"]
