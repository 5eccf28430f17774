"""Matrix products of recurrent cells, and the memory layout of sequences."""

from __future__ import annotations

from oplet_builtin_ops.recurrent.recurrent_products import Product, stacked
from oplet_builtin_ops.recurrent.sequences import Layout

__all__ = ["Layout", "Product", "stacked"]
