"""Products of float rows and the rows of float weights. Numerics: tflite/kernels/internal/reference/fully_connected.h"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, TensorType
from oplet.kernels.arrays import Thunk
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.layers.weights import ensure_bias, weight_data

__all__ = ["FloatRows"]


class FloatRows:
    """The plan of a float FULLY_CONNECTED node: the product of input rows with weight rows.

    Args:
        count: the number of rows of the input.
        activation: the fused activation.
    """

    def __init__(self, node: Node, count: int, activation: ActivationFunctionType) -> None:
        ensure_bias(node.optional_input(2), node.inputs[1].shape[0], TensorType.FLOAT32)
        self._node, self._count = node, count
        self._activation = activation

    def plan(self, context: Context) -> None:
        """Plan the products, and request scratch memory for them."""
        from oplet_builtin_ops.layers.rows import plan_rows  # here, as below: compiled kernels serve most

        node, count, weights = self._node, self._count, self._node.inputs[1]
        self._plan = plan_rows(context, node, count, weights, source=weights.type, compute=weights.type, in_place=True)

    def thunk(self) -> Thunk:
        """Return the function that runs the node."""
        from oplet_builtin_ops.layers.float_layer import FloatFinish
        from oplet_builtin_ops.layers.program import run_program
        from oplet_builtin_ops.layers.rows import MANY_ROWS

        node, plan = self._node, self._plan
        source, weights = node.inputs[:2]
        bias = node.optional_input(2)
        if weights.is_constant and plan.count >= MANY_ROWS:
            matrix = node.cached("matrix", [weights], lambda: np.ascontiguousarray(weight_data(node, weights).T), shared=True)
        else:
            matrix = weight_data(node, weights).T
        finish = FloatFinish(None if bias is None else bias.data, bias is not None and bias.is_constant, self._activation)
        target = node.outputs[0].data.reshape(plan.count, plan.filters)
        return run_program(lambda: plan.calls(source.data, matrix, target, lambda _, block: finish.calls(block)))
