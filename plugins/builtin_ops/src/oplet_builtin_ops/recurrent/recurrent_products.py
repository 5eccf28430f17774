"""Matrix products of recurrent cells: activations times the weights of all gates in one product.

Weights are float32, or int8 with activations quantized while the model runs (hybrid), one scale per row of activations.

Numerics: tflite/kernels/lstm_eval.cc and internal/kernel_utils.cc (MatrixBatchVectorMultiplyAccumulate)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType, ensure
from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import ensure_scale
from oplet.kernels.operands import all_constant
from oplet_builtin_ops.layers.hybrid import quantize_asymmetric, quantize_symmetric
from oplet_builtin_ops.layers.program import Call
from oplet_builtin_ops.layers.quantized_layer import exact_type
from oplet_builtin_ops.layers.sparse import densify

__all__ = ["DiagonalProduct", "Product", "recurrent_products", "stacked"]


def stacked(node: Node, tensors: Sequence[Tensor], dtype: np.dtype[Any] | None = None) -> Array:
    """Concatenate several tensors along the first axis; cached if they are constant.

    Args:
        dtype: the type of the result; None for that of the tensors.
    """

    def join() -> Array:
        rank = max(tensor.ndim for tensor in tensors)
        return np.concatenate([_values(tensor, rank) for tensor in tensors], dtype=dtype, casting="unsafe")

    return node.cached(("stack", tuple(tensor.index for tensor in tensors), dtype), tensors, join, shared=True)


def _values(tensor: Tensor, rank: int) -> Array:
    values = tensor.data if tensor.sparsity is None else densify(tensor.data, tensor.sparsity, tensor.shape)
    if values.ndim < rank:
        return np.diag(values)  # a diagonal matrix among full ones
    # LiteRT reads the bytes of uint8 weights as int8.
    return values.view(np.int8) if values.dtype == np.uint8 else values


class Product:
    """Product of activations (count, depth) with transposed weights (columns, depth), float or hybrid.

    Args:
        context: the node's context.
        node: the node.
        weights: matrices of equal depth and type, one per gate.
        count: the number of rows of activations.
        asymmetric: whether activations are quantized with a zero point, if the weights are integers.
    """

    def __init__(self, context: Context, node: Node, weights: Sequence[Tensor], count: int, asymmetric: bool) -> None:
        self.node = node
        self.weights = list(weights)
        self.asymmetric = asymmetric
        self.hybrid = weights[0].type != TensorType.FLOAT32
        self.columns = sum(tensor.shape[0] for tensor in weights)
        if not self.hybrid:
            return
        scales = [np.full(tensor.shape[0], ensure_scale(tensor), np.float32) for tensor in weights]
        self.scales = np.concatenate(scales)
        shape = count, weights[0].shape[1]
        self.quantized, self.spare = (context.add_temporary(node, shape) for _ in range(2))
        self.factors = context.add_temporary(node, (count, self.columns))
        self.compute = exact_type(self._widest() * (255 if asymmetric else 127))
        self.products = context.add_temporary(node, (count, self.columns), self.compute)

    def _widest(self) -> float:
        if not all_constant(self.weights):
            return 128.0 * self.weights[0].shape[1]
        rows = stacked(self.node, self.weights)
        return float(np.absolute(rows, dtype=np.int16).sum(axis=1, dtype=np.int64).max(initial=0))

    def calls(self, source: Array, target: Array) -> list[Call]:
        """Return numpy calls: target (count, columns) = source (count, depth) @ weights.T in float32."""
        if not target.size:
            return []
        if not self.hybrid:
            return [(np.matmul, (source, stacked(self.node, self.weights).T, target))]
        if not source.size:
            return [(target.fill, (0,))]
        quantized, products, factors = self.quantized.data, self.products.data, self.factors.data
        rows = stacked(self.node, self.weights, products.dtype)
        scales = np.empty(len(source), np.float32)
        quantize = quantize_asymmetric if self.asymmetric else quantize_symmetric
        return [
            (quantize, (source, quantized, scales, self.spare.data)),
            (np.matmul, (quantized, rows.T, products)),
            (np.multiply, (scales.reshape(() if scales.size == 1 else (-1, 1)), self.scales, factors)),
            (np.multiply, (products, factors, target)),
        ]


class DiagonalProduct:
    """Product of activations with diagonal recurrent weights, stored as float32 vectors."""

    def __init__(self, node: Node, weights: Sequence[Tensor]) -> None:
        self.node = node
        self.weights = list(weights)

    def calls(self, source: Array, target: Array) -> list[Call]:
        """Return numpy calls: target (count, gates * depth) = source (count, depth) times each gate's diagonal."""
        diagonals = stacked(self.node, self.weights).reshape(len(self.weights), -1)
        by_gate = target.reshape(len(target), len(self.weights), -1)
        return [(np.multiply, (source[:, None], diagonals, by_gate))]


def recurrent_products(
    context: Context, node: Node, weights: Sequence[Tensor], count: int, asymmetric: bool
) -> Product | DiagonalProduct:
    """Plan the product with recurrent weights, which are all matrices or all diagonals."""
    diagonal = [tensor for tensor in weights if tensor.ndim == 1]
    if len(diagonal) == len(weights):
        return DiagonalProduct(node, weights)
    for tensor in diagonal:
        ensure(
            all(other.type == TensorType.FLOAT32 for other in weights),
            f"{tensor} is a diagonal and other recurrent weights are matrices of integers; they must all be of one kind.",
        )
    return Product(context, node, weights, count, asymmetric)
