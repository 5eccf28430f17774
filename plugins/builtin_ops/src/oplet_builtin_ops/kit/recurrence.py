"""Products of recurrent cells with their weights, and how sequences lie in memory."""

from __future__ import annotations

from oplet_builtin_ops.recurrent.recurrent_products import Product, stacked
from oplet_builtin_ops.recurrent.sequences import Layout

__all__ = ["Layout", "Product", "stacked"]
