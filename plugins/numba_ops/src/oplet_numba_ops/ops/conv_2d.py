"""CONV_2D, compiled: float32, and int8 or uint8 activations with int8 or int4 weights, in one group, with constant weights."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, decline
from oplet.schema.options import Conv2DOptions
from oplet_builtin_ops.kit.convolutions import Products
from oplet_builtin_ops.kit.layers import QuantizedLayer
from oplet_builtin_ops.ops.conv_2d import REGISTRATION as BUILTIN
from oplet_numba_ops.convolution.output_stage import float_finishing
from oplet_numba_ops.convolution.products import plan_quantized_tiles, plan_tiles
from oplet_numba_ops.overriding import Bind, override


def plan(context: Context, node: Node) -> Bind:
    source, weights = node.inputs[:2]
    bias = node.optional_input(2)
    if isinstance(node.prepared, Products):
        products: Products = node.prepared
        if products.groups != 1 or weights.sparsity is not None:
            decline("its channels are in groups, or its weights sparse.")
        activation = node.options(Conv2DOptions).fused_activation_function
        filters = weights.shape[0]
        return plan_tiles(
            context,
            node,
            products.windows,
            filters,
            lambda: weights.data.reshape(filters, -1),
            lambda: float_finishing(bias, filters, activation),
        )
    products, layer = node.prepared
    if not isinstance(layer, QuantizedLayer) or products.groups != 1:
        decline("its channels are in groups, or its numbers of a kind that it does not compute with.")
    return plan_quantized_tiles(context, node, products.windows, layer, source.zero_point)


REGISTRATION = override(BUILTIN, plan, NodeLimits(constant=[1, 2]))
