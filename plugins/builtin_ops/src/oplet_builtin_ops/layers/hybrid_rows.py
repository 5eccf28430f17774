"""Hybrid FULLY_CONNECTED: float rows, quantized at run time, times integer weights.

The weights have 8, 4 or 2 bits, and one scale, one per row or one per block of a row.

Numerics: EvalHybrid in tflite/kernels/fully_connected.cc, and `xnnpack_claims`
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from oplet import Context, Node, TensorType
from oplet.kernels.activations import CLAMPS
from oplet.kernels.arrays import Array, Thunk
from oplet.schema.options import FullyConnectedOptions
from oplet_builtin_ops.arithmetic.fused_activations import apply_activation
from oplet_builtin_ops.layers.blocks import block_size
from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_builtin_ops.layers.integer_rows import arranged, plan_integer_rows
from oplet_builtin_ops.layers.program import Call
from oplet_builtin_ops.layers.quantized_layer import ensure_symmetric
from oplet_builtin_ops.layers.weights import ensure_bias
from oplet_builtin_ops.layers.xnnpack_claims import follows_claim

__all__ = ["HybridRows"]


class HybridRows:
    """One hybrid FULLY_CONNECTED node.

    Args:
        count: the number of rows of the input, each of which is quantized by itself.
        options: the node's options.

    Attributes:
        layer: the quantization of the rows, and the finish of the sums.
    """

    def __init__(self, context: Context, node: Node, count: int, options: FullyConnectedOptions) -> None:
        self._node, self._count = node, count
        self.layer = _layer(context, node, count, options)

    def plan(self, context: Context) -> None:
        """Plan the products, and request scratch memory for them."""
        node, count, weights = self._node, self._count, self.layer.weights
        source, compute, blocks = self.layer.source.type, self.layer.compute, self.layer.block_size
        self._plan = plan_integer_rows(context, node, count, weights, source=source, compute=compute, streamed=not blocks)
        self.layer.add_scratch(context)

    def thunk(self) -> Thunk:
        """Return the function that runs the node."""
        return self.layer.thunk(self._calls)

    def _calls(self) -> Iterator[Call]:
        plan, layer = self._plan, self.layer
        finish = layer.finish()
        factors = np.empty((layer.batches, layer.channels), np.float32)
        output = self._node.outputs[0].data.reshape(-1, plan.filters)

        def finish_strip(strip: slice, block: Array) -> list[Call]:
            target = output[strip]
            copy: list[Call] = [] if plan.accumulators is None else [(np.copyto, (target, block))]
            calls = copy + finish.calls(target, factors[strip])
            return calls if layer.activation in CLAMPS else [*calls, (apply_activation, (target, layer.activation))]

        rows = arranged(self._node, plan, layer.rows, layer.weights, layer.compute)
        return chain(layer.quantize(factors), plan.calls(layer.quantized.data, rows, output, finish_strip))


def _layer(context: Context, node: Node, count: int, options: FullyConnectedOptions) -> HybridLayer:
    source, weights = node.inputs[:2]
    bias, activation = node.optional_input(2), options.fused_activation_function
    blocks = block_size(weights) > 0
    if weights.type in (TensorType.INT4, TensorType.INT2) and not blocks:
        ensure_symmetric(weights)
    ensure_bias(bias, weights.shape[0], TensorType.FLOAT32)
    asymmetric = blocks or options.asymmetric_quantize_inputs
    even = not blocks and follows_claim(context, node)
    return HybridLayer(node, source, weights, bias, 0, asymmetric, activation, count, even)
