"""FULLY_CONNECTED, compiled: with constant weights and bias: several rows of float32; int8 or uint8 activations with weights of
8, 4 or 2 bits; and hybrid layers (few rows, or any number if the processor has byte dot products).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.kernels.activations import CLAMPS
from oplet.kernels.windows import Axis, Windows2D
from oplet.schema.enums import FullyConnectedOptionsWeightsFormat
from oplet.schema.options import FullyConnectedOptions
from oplet_builtin_ops.ops.fully_connected import REGISTRATION as BUILTIN
from oplet_builtin_ops.ops.fully_connected import check_rows
from oplet_compiled_ops.convolution.output_stage import float_finishing
from oplet_compiled_ops.convolution.products import plan_quantized_tiles, plan_tiles
from oplet_compiled_ops.overriding import Bind, override

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer

#: The most weights of a layer of one row of floats.
_LARGEST_OF_ONE = 1 << 22


def plan(context: Context, node: Node) -> Bind:
    source, weights = node.inputs[:2]
    bias = node.optional_input(2)
    if weights.sparsity is not None or not weights.size:
        decline("its weights are sparse or none.")
    options = node.options(FullyConnectedOptions)
    if options.weights_format == FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8:
        decline("its weights are shuffled.")
    prepared: Any = node.prepared  # what `check_rows` returns
    units, depth = weights.shape
    single = Axis(1, 1, 1, 1, 1, 0)
    windows = Windows2D(source.size // depth, single, single, depth)
    if source.type is not TensorType.FLOAT32:
        return plan_quantized_tiles(context, node, windows, prepared.layer, 0)
    if weights.type is not TensorType.FLOAT32:
        return _plan_hybrid(context, node, windows, prepared.layer)
    # For one row each weight is read once, and BLAS needs no copy of the weights in another order.
    if windows.count < 2 and weights.size > _LARGEST_OF_ONE:
        decline("numpy's product is as fast for one row of floats and many weights.")
    activation = options.fused_activation_function
    return plan_tiles(context, node, windows, units, lambda: weights.data, lambda: float_finishing(node, bias, units, activation))


def _plan_hybrid(context: Context, node: Node, windows: Windows2D, layer: HybridLayer) -> Bind:
    # Imported here, as many models have no such layers.
    from oplet_compiled_ops.convolution.hybrid import multiplies_bytes, plan_hybrid_rows, plan_scaled_tiles

    if layer.activation not in CLAMPS:
        decline("its activation is not one that it computes.")
    if multiplies_bytes(layer):
        return plan_scaled_tiles(context, node, windows, layer)
    if not layer.block_size and layer.compute == TensorType.FLOAT32:
        from oplet_compiled_ops.convolution.direct import Geometry, plan_direct_layer

        geometry = Geometry(*windows, 1, node.inputs[1].shape[0])
        if geometry.is_small:
            return plan_direct_layer(context, node, geometry, layer)
    return plan_hybrid_rows(context, node, layer)


REGISTRATION = override(BUILTIN, plan, NodeLimits(constant=[1, 2]), check=check_rows)
