"""FULLY_CONNECTED, compiled: several rows of float32, and int8 or uint8 activations with weights of 8, 4 or 2 bits, and a
few rows of float32 with such weights; weights and bias constant.
"""

from __future__ import annotations

from oplet import Context, Node
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import FullyConnectedOptions
from oplet_builtin_ops.layers.convolution import Products
from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer
from oplet_builtin_ops.layers.windows import Axis, Windows
from oplet_builtin_ops.ops.fully_connected import REGISTRATION as BUILTIN
from oplet_numba_ops.finishing import float_finishing
from oplet_numba_ops.hybrid import plan_hybrid_rows
from oplet_numba_ops.overriding import Bind, override
from oplet_numba_ops.products import plan_quantized_tiles, plan_tiles

_CLAMPS = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU_N1_TO_1,
    ActivationFunctionType.RELU6,
)


def plan(context: Context, node: Node) -> Bind | None:
    source, weights = node.inputs[:2]
    bias = node.optional_input(2)
    fixed = weights.is_constant and (bias is None or bias.is_constant) and weights.sparsity is None
    if not fixed or not isinstance(node.prepared, tuple) or not weights.size:
        return None
    products_or_streamed, layer = node.prepared
    units, depth = weights.shape
    single = Axis(1, 1, 1, 1, 1, 0)
    windows = Windows(source.size // depth, single, single, depth)
    if isinstance(layer, QuantizedLayer):
        return plan_quantized_tiles(context, node, windows, layer, 0)
    if isinstance(layer, HybridLayer):
        return plan_hybrid_rows(context, node, layer) if layer.activation in _CLAMPS else None
    # One row reads each weight once, for which BLAS needs no copy of them in another order.
    if layer is not None or not isinstance(products_or_streamed, Products) or windows.count < 2:
        return None
    activation = node.options(FullyConnectedOptions).fused_activation_function
    return plan_tiles(context, node, windows, units, lambda: weights.data, lambda: float_finishing(bias, units, activation))


REGISTRATION = override(BUILTIN, plan)
