"""`Products`, the plan that CONV_2D and DEPTHWISE_CONV_2D prepare: the windows, and the matrix products with the filters."""

from __future__ import annotations

from oplet_builtin_ops.layers.convolution import Products

__all__ = ["Products"]
