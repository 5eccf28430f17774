"""CONV_2D, compiled, with constant weights: float32, ungrouped integer convolutions, and hybrid ones (float activations, integer
weights) if the processor has byte dot products; small layers of other kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.kernels.windows import Axis
from oplet.schema.options import Conv2DOptions
from oplet_builtin_ops.ops.conv_2d import REGISTRATION as BUILTIN
from oplet_compiled_ops.convolution.output_stage import float_finishing
from oplet_compiled_ops.convolution.products import plan_quantized_tiles, plan_tiles
from oplet_compiled_ops.overriding import Bind, override

if TYPE_CHECKING:
    from oplet_builtin_ops.kit.convolutions import Products
    from oplet_builtin_ops.kit.layers import HybridLayer, QuantizedLayer
    from oplet_compiled_ops.convolution.direct import Geometry


def plan(context: Context, node: Node) -> Bind:
    source, weights = node.inputs[:2]
    prepared: Any = node.prepared
    if source.type is TensorType.FLOAT32 and weights.type is TensorType.FLOAT32:
        return _plan_floats(context, node, prepared)
    products: Products
    products, layer = prepared
    if source.type is not TensorType.FLOAT32 and products.groups == 1:
        return plan_quantized_tiles(context, node, products.windows, layer, source.zero_point)
    return _plan_others(context, node, products, layer)


def _plan_floats(context: Context, node: Node, products: Products) -> Bind:
    weights, bias = node.inputs[1], node.optional_input(2)
    if weights.sparsity is not None:
        decline("its weights are sparse.")
    activation = node.options(Conv2DOptions).fused_activation_function
    filters = weights.shape[0]
    if products.groups != 1:
        from oplet_compiled_ops.convolution.direct import plan_direct

        return plan_direct(context, node, _geometry(products), lambda: weights.data.reshape(filters, -1), bias, activation)
    return plan_tiles(
        context,
        node,
        products.windows,
        filters,
        lambda: weights.data.reshape(filters, -1),
        lambda: float_finishing(node, bias, filters, activation),
    )


def _plan_others(context: Context, node: Node, products: Products, layer: QuantizedLayer | HybridLayer) -> Bind:
    """Plan a hybrid layer, or one of several groups."""
    # Imported here, as many models have none of them.
    from oplet_builtin_ops.kit.layers import HybridLayer
    from oplet_compiled_ops.convolution.direct import Geometry, plan_direct_layer

    geometry = _geometry(products)
    if isinstance(layer, HybridLayer):
        from oplet_compiled_ops.convolution.hybrid import multiplies_bytes, plan_scaled_tiles

        if products.groups == 1 and multiplies_bytes(layer):
            return plan_scaled_tiles(context, node, products.windows, layer)
        batch, *_, channels = node.inputs[0].shape
        if layer.batches > batch:  # each pixel is quantized by itself
            single = Axis(1, 1, 1, 1, 1, 0)
            geometry = Geometry(layer.batches, single, single, channels, 1, products.filters)
    return plan_direct_layer(context, node, geometry, layer)


def _geometry(products: Products) -> Geometry:
    from oplet_compiled_ops.convolution.direct import Geometry

    windows, groups = products.windows, products.groups
    return Geometry(windows.batch, windows.height, windows.width, windows.channels // groups, groups, products.filters)


REGISTRATION = override(BUILTIN, plan, NodeLimits(constant=[1, 2]))
