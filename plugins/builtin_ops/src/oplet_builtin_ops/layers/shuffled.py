"""FULLY_CONNECTED with weights shuffled into 4x16 blocks: uint8 activations, int16 output, for the gates of LSTM cells.

A block holds 16 values of 4 neighbouring rows; the sign bit of each value is flipped, so that its byte read as int8 is the
value less 128. Numerics: ShuffledFullyConnected in tflite/kernels/internal/reference/fully_connected.h
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet.kernels.activations import activation_range
from oplet.kernels.arrays import Thunk
from oplet.kernels.requantization import Rounding
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.arithmetic.requantize import Requantizer
from oplet_builtin_ops.layers.program import Call, run_calls
from oplet_builtin_ops.layers.quantized_layer import channel_scales
from oplet_builtin_ops.layers.weights import ensure_bias

__all__ = ["ShuffledLayer"]


class ShuffledLayer:
    """The plan of a FULLY_CONNECTED node with shuffled weights; building it checks the node."""

    def __init__(self, context: Context, node: Node, count: int, activation: ActivationFunctionType) -> None:
        source, weights = node.inputs[:2]
        output, workspace = node.outputs
        self.node, self.count, self.activation = node, count, activation
        ensure_type(source, TensorType.UINT8)
        ensure_type(weights, TensorType.UINT8)
        ensure_type(output, TensorType.INT16)
        ensure_type(workspace, TensorType.UINT8)
        units, depth = weights.shape
        ensure(count in (1, 4), f"{source} has {count} rows; shuffled weights take 1 or 4.")
        ensure(units % 4 == 0 and depth % 16 == 0, f"the shape of the shuffled weights {weights} is not made of 4x16 blocks.")
        ensure_bias(node.optional_input(2), units, TensorType.INT32)
        self.scales = channel_scales(source, weights, output, units, 0, narrow=True)
        # LiteRT writes the shuffled input here; nothing reads it after the node.
        context.resize_tensor(workspace, (count, depth))

    def plan(self, context: Context) -> None:
        """Request scratch memory."""
        node, count, (units, depth) = self.node, self.count, self.node.inputs[1].shape
        self.matrix = context.add_temporary(node, (count, depth), TensorType.FLOAT64)
        self.products = context.add_temporary(node, (count, units), TensorType.FLOAT64)
        self.scratch = context.add_temporary(node, (count * units,), TensorType.FLOAT64)

    def _calls(self) -> list[Call]:
        source, weights = self.node.inputs[:2]
        bias, (output, workspace) = self.node.optional_input(2), self.node.outputs
        units, depth = weights.shape
        blocks = weights.data.view(np.int8).reshape(units // 4, depth // 16, 4, 16)
        rows = blocks.transpose(0, 2, 1, 3).reshape(units, depth).astype(np.float64)
        offsets = np.zeros(units, np.int64) if bias is None else bias.data.reshape(-1).astype(np.int64)
        limits = depth * 128.0 * 128.0 + np.abs(offsets)
        low, high = activation_range(self.activation, output.type, output.scale, output.zero_point)
        # The output's zero point is ignored, as in LiteRT.
        requantizer = Requantizer(self.scales, offsets, limits, 0, low, high, Rounding.DOUBLE)
        matrix, products = self.matrix.data, self.products.data
        return [
            (np.bitwise_xor, (source.data.reshape(matrix.shape), np.uint8(0x80), workspace.data)),
            (np.copyto, (matrix, workspace.data.view(np.int8))),
            (np.matmul, (matrix, rows.T, products)),
            *requantizer.calls(products, output.data.reshape(products.shape), self.scratch.data),
        ]

    def thunk(self) -> Thunk:
        """Return the function that runs the node."""
        inputs = [tensor for tensor in self.node.inputs[1:] if tensor is not None]
        if all(tensor.is_constant for tensor in inputs):
            return run_calls(self._calls())
        return lambda: run_calls(self._calls())()
