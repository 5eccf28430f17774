"""Quantized FULLY_CONNECTED: integer rows times integer weight rows.

Numerics: tflite/kernels/fully_connected.cc, tflite/kernels/internal/reference/fully_connected.h and integer_ops/fully_connected.h
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from oplet import Context, Node, TensorType
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.requantization import Rounding
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer, channel_scales, ensure_symmetric
from oplet_builtin_ops.layers.weights import ensure_bias

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.program import Call

__all__ = ["QuantizedRows"]


class QuantizedRows:
    """The plan of a quantized FULLY_CONNECTED node.

    Args:
        count: the number of rows of the input.
        activation: the fused activation.

    Attributes:
        layer: the parameters of the layer's quantization.
    """

    def __init__(self, node: Node, count: int, activation: ActivationFunctionType) -> None:
        self._node, self._count = node, count
        self.layer = _layer(node, activation)

    def plan(self, context: Context) -> None:
        """Plan the products, and request scratch memory for them."""
        from oplet_builtin_ops.layers.integer_rows import plan_integer_rows  # here, as compiled kernels serve most

        weights = self.layer.weights
        source, compute = self.layer.source.type, self.layer.compute
        self._plan = plan_integer_rows(context, self._node, self._count, weights, source=source, compute=compute)
        self.layer.add_scratch(context, self._plan.longest * weights.shape[0])

    def thunk(self) -> Thunk:
        """Return the function that runs the node."""
        return self.layer.thunk(self._calls)

    def _calls(self) -> Iterator[Call]:
        from oplet_builtin_ops.layers.integer_rows import arranged

        plan, layer = self._plan, self.layer
        requantizer = layer.requantizer()
        output = layer.output.data.reshape(-1, plan.filters)

        def finish(strip: slice, block: Array) -> list[Call]:
            return layer.finish(requantizer, block, output[strip])

        rows = arranged(self._node, plan, layer.rows, layer.weights, layer.compute)
        return plan.calls(layer.source.data, rows, output, finish)


def _layer(node: Node, activation: ActivationFunctionType) -> QuantizedLayer:
    source, weights = node.inputs[:2]
    bias, output = node.optional_input(2), node.outputs[0]
    units = weights.shape[0]
    if weights.type in (TensorType.INT4, TensorType.INT2):
        ensure_symmetric(weights)
    if source.type == TensorType.INT16:
        ensure_symmetric(source, output)
        ensure_bias(bias, units, TensorType.INT32, TensorType.INT64)
    else:
        ensure_bias(bias, units, TensorType.INT32)
    rounding = Rounding.WIDE if weights.type == TensorType.INT16 else Rounding.FLOAT
    single = weights.quantization is not None and not weights.quantization.per_channel
    scales = channel_scales(source, weights, output, units, 0, narrow=single and rounding is Rounding.WIDE)
    zero_point = 0
    if single:
        zero_point = weights.zero_point
    return QuantizedLayer(node, source, weights, bias, output, 0, scales, rounding, activation, zero_point)
