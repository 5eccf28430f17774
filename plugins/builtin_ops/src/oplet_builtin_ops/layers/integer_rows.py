"""Rows of integer weights as a layer multiplies with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType
from oplet_builtin_ops.layers.convolution import Products, plan_products
from oplet_builtin_ops.layers.streamed import Streamed, is_large, plan_streamed
from oplet_builtin_ops.layers.windows import Windows
from oplet_builtin_ops.shaping.shapes import Array

__all__ = ["MANY_ROWS", "arranged", "plan_rows"]

#: From so many rows on, weights pay for being copied into the order in which products read them.
MANY_ROWS = 16


def plan_rows(
    context: Context, node: Node, count: int, weights: Tensor, *, source: TensorType, compute: TensorType, streamed: bool = True
) -> Products | Streamed:
    """Lay out the product of `count` rows with integer weights of shape (filters, depth).

    Args:
        streamed: whether large weights may be converted piece by piece.
    """
    in_place = node.outputs[0].type == TensorType.FLOAT32 and compute == TensorType.FLOAT32
    if streamed and is_large(weights):
        return plan_streamed(context, node, count, weights, source=source, compute=compute, in_place=in_place)
    units, depth = weights.shape
    return plan_products(context, node, Windows.of_rows(count, depth), units, source=source, compute=compute, in_place=in_place)


def arranged(node: Node, plan: Products | Streamed, rows: Any, weights: Tensor, compute: TensorType) -> Array:
    """The weights as the plan multiplies them; a float copy is made once if they are constant.

    Args:
        rows: gives the weights, one row per output channel.
    """
    if isinstance(plan, Streamed):
        integers: Array = rows()
        return integers
    dtype: Any = np.float32 if compute == TensorType.FLOAT32 else np.float64
    many = plan.windows.count >= MANY_ROWS

    def make() -> Array:
        return np.asarray(rows().T, dtype, order="C" if many else "F")

    matrix = node.cached(f"matrix {dtype} {many}", make) if weights.is_constant else make()
    return matrix[None]
