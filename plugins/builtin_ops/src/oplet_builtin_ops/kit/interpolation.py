"""Where each output of RESIZE_BILINEAR lies between which inputs."""

from __future__ import annotations

from oplet_builtin_ops.shaping.interpolation import float_neighbours, integer_neighbours

__all__ = ["float_neighbours", "integer_neighbours"]
