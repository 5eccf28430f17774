"""DEPTHWISE_CONV_2D in numpy; with a single input channel it is an ordinary convolution."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, TensorType
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.windows import Windows2D
from oplet.schema.options import DepthwiseConv2DOptions
from oplet_builtin_ops.layers.convolution import Products, plan_products
from oplet_builtin_ops.layers.depthwise import Taps, plan_taps
from oplet_builtin_ops.layers.program import Call, run_anew, run_calls, run_program
from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer
from oplet_builtin_ops.layers.windows import Windows

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer

__all__ = ["bind", "prepare"]


def prepare(
    context: Context, node: Node, checked: Windows2D, channels: int, filters: int, layer: QuantizedLayer | HybridLayer | None
) -> None:
    """Plan a node's calls of numpy, by what `check_depthwise` has found."""
    windows = Windows(*checked)
    source = node.inputs[0].type
    compute = layer.compute if layer is not None else TensorType.FLOAT32
    in_place = source == TensorType.FLOAT32 and compute == TensorType.FLOAT32
    by_image = layer is not None and not isinstance(layer, QuantizedLayer)
    if layer is not None and not isinstance(layer, QuantizedLayer):
        layer.add_scratch(context)
    plan: Products | Taps
    if channels == 1:
        windows = windows._replace(channels=1)
        plan = plan_products(
            context, node, windows, filters, source=source, compute=compute, in_place=in_place, by_image=by_image
        )
    else:
        plan = plan_taps(
            context, node, windows, filters // channels, source=source, compute=compute, in_place=in_place, by_image=by_image
        )
    if isinstance(layer, QuantizedLayer):
        layer.add_scratch(context, plan.longest * filters, plan.lanes)
    node.prepared = plan, layer


def bind(context: Context, node: Node) -> Thunk:
    """Return the function that runs a node."""
    if not node.outputs[0].size:
        return run_calls([])
    plan: Products | Taps
    layer: QuantizedLayer | HybridLayer | None
    plan, layer = node.prepared
    if isinstance(layer, QuantizedLayer):
        return layer.thunk(lambda: layer.calls(plan, _arranged(node, plan, layer), layer.requantizer()))
    if layer is not None:
        return layer.thunk(lambda: layer.calls(plan, _arranged(node, plan, layer)))
    return _bind_float(node, plan)


def _arranged(node: Node, plan: Products | Taps, layer: QuantizedLayer | HybridLayer) -> Array:
    """Return the weights in the layout and type that the plan multiplies, cached if constant."""
    _, height, width, filters = node.inputs[1].shape
    dtype = np.float32 if layer.compute == TensorType.FLOAT32 else np.float64

    def make() -> Array:
        by_tap = np.asarray(layer.rows().T, dtype, order="C")
        return by_tap[None] if isinstance(plan, Products) else by_tap.reshape(height, width, filters)

    return node.cached(("weights", dtype, type(plan), node.inputs[0].type), [node.inputs[1]], make, shared=True)


def _bind_float(node: Node, plan: Products | Taps) -> Thunk:
    from oplet_builtin_ops.layers.float_layer import FloatFinish  # here, as compiled kernels serve most of them

    source, weights = node.inputs[:2]
    bias, output = node.optional_input(2), node.outputs[0]
    fixed = weights.is_constant and (bias is None or bias.is_constant)

    def calls() -> Iterator[Call]:
        finish = FloatFinish(
            None if bias is None else bias.data, fixed, node.options(DepthwiseConv2DOptions).fused_activation_function, node
        )
        arranged = weights.data[0] if isinstance(plan, Taps) else weights.data.reshape(1, -1, weights.shape[3])
        target = output.data.reshape(-1, weights.shape[3])
        return plan.calls(source.data, np.float32(0), arranged, target, lambda _, block: finish.calls(block))

    return run_program(calls) if fixed else partial(run_anew, calls)
