"""CONV_2D in numpy: as matrix products of windows and filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Tensor, TensorType
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.windows import Windows2D
from oplet.schema.options import Conv2DOptions
from oplet_builtin_ops.layers.convolution import Products, filter_matrices, plan_products
from oplet_builtin_ops.layers.program import Call, run_calls, run_program
from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer
from oplet_builtin_ops.layers.weights import transposed
from oplet_builtin_ops.layers.windows import Windows

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer

__all__ = ["bind", "prepare"]


def prepare(
    context: Context, node: Node, checked: Windows2D, groups: int, filters: int, layer: QuantizedLayer | HybridLayer | None
) -> None:
    """Plan a node's calls of numpy, by what `check_convolution` has found."""
    windows = Windows(*checked)
    source = node.inputs[0].type
    if layer is None:
        node.prepared = plan_products(
            context, node, windows, filters, source=source, compute=source, groups=groups, in_place=True
        )
    elif isinstance(layer, QuantizedLayer):
        if windows.are_rows and groups == 1:
            # Gathering patches takes twice as long for float64; and what is added to an output has no place among those of several groups.
            layer.fold(layer.weights.size // filters)
        products = plan_products(
            context, node, windows, filters, source=source, compute=layer.compute, groups=groups, added=int(layer.folds)
        )
        layer.add_scratch(context, products.longest * filters, products.lanes)
        node.prepared = products, layer
    else:
        layer.add_scratch(context)
        single = layer.compute == TensorType.FLOAT32
        products = plan_products(
            context,
            node,
            windows,
            filters,
            source=source,
            compute=layer.compute,
            groups=groups,
            in_place=single,
            by_image=True,
        )
        node.prepared = products, layer


def bind(context: Context, node: Node) -> Thunk:
    """Return the function that runs a node."""
    if not node.outputs[0].size:
        return run_calls([])
    if isinstance(node.prepared, Products):
        return _bind_float(node, node.prepared)
    products: Products
    layer: QuantizedLayer | HybridLayer
    products, layer = node.prepared
    if isinstance(layer, QuantizedLayer):
        return layer.thunk(lambda: _quantized_calls(node, products, layer))
    return layer.thunk(lambda: _hybrid_calls(node, products, layer))


def _matrices(
    node: Node, products: Products, rows: Callable[[], Array], dtype: np.dtype, weights: Tensor, *, scaled: bool = False
) -> Array:
    """Return the weights as one matrix for each group, cached if constant; the input's shape decides their layout.

    Args:
        rows: returns the weights; it is called only where they are not made yet.
        scaled: whether they come multiplied with the output factors, as `QuantizedLayer.fold` decides.
    """
    groups = products.groups

    def make() -> Array:
        return transposed(rows().reshape(groups, products.filters // groups, -1), dtype)

    # The factors depend on weights and bias, and on tensors whose quantization does not change.
    key = "matrices", dtype, groups, scaled, node.inputs[0].type, node.outputs[0].type
    return node.cached(key, [weights, node.optional_input(2) if scaled else None], make, shared=True)


def _bind_float(node: Node, products: Products) -> Thunk:
    from oplet_builtin_ops.layers.float_layer import FloatFinish  # here, as compiled kernels serve most of them

    source, weights = node.inputs[:2]
    bias = node.optional_input(2)
    if weights.is_constant and products.windows.count > 4:
        # BLAS is faster if it reads a matrix along its rows; for a few windows the copy would take longer.
        matrices = _matrices(node, products, lambda: weights.data, weights.dtype, weights)
    else:
        matrices = filter_matrices(weights.data, products.groups)
    finish = FloatFinish(
        None if bias is None else bias.data,
        bias is not None and bias.is_constant,
        node.options(Conv2DOptions).fused_activation_function,
        node,
    )
    output = node.outputs[0].data.reshape(-1, products.filters)
    return run_program(lambda: products.calls(source.data, np.float32(0), matrices, output, lambda _, block: finish.calls(block)))


def _quantized_calls(node: Node, products: Products, layer: QuantizedLayer) -> Iterator[Call]:
    requantizer = layer.requantizer()
    dtype = np.dtype(np.float32 if layer.compute == TensorType.FLOAT32 else np.float64)

    def rows() -> Array:
        return requantizer.scaled(layer.rows()) if layer.folds else layer.rows()

    return layer.calls(products, _matrices(node, products, rows, dtype, layer.weights, scaled=layer.folds), requantizer)


def _hybrid_calls(node: Node, products: Products, layer: HybridLayer) -> Iterator[Call]:
    dtype = np.dtype(np.float32 if layer.compute == TensorType.FLOAT32 else np.float64)
    return layer.calls(products, _matrices(node, products, layer.rows, dtype, layer.weights))
