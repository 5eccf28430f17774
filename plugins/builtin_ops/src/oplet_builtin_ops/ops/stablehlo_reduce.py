"""STABLEHLO_REDUCE: axes of tensors folded away, each tensor by itself.

The body may be one sum, product, maximum, minimum, logical and, or logical or, of one tensor.
"""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, Registration, ensure
from oplet.schema.stablehlo_options import StablehloReduceOptions
from oplet_builtin_ops.control.regions import body_function
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly
from oplet_builtin_ops.shaping.shapes import Thunk, ensure_operands, ensure_same_type
from oplet_builtin_ops.stablehlo import HALVES, VALUES, attribute, ensure_axes, ensure_not_quantized, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure(
        len(node.inputs) == 2,
        f"it reduces {len(node.inputs) // 2} tensors together, with {len(node.inputs)} inputs; only one is known here.",
    )
    ensure_operands(node, 2)
    source, initial = node.inputs
    output = node.outputs[0]
    ensure_values(source)
    ensure_same_type(source, initial)
    ensure_same_type(source, output)
    ensure_not_quantized(source, output)
    ensure(initial.size == 1, f"the initial value {initial} must be one value, not {initial.size}.")
    options = node.options(StablehloReduceOptions)
    axes = attribute(options.dimensions)
    ensure_axes("dimensions", axes, source.ndim)
    function = body_function(context, options.body_subgraph_index)
    ensure(function is not None, "its body does nothing, and a reduction must combine two values.")
    node.prepared = function, tuple(axes)
    context.resize_tensor(output, [dim for axis, dim in enumerate(source.shape) if axis not in axes])


def bind(context: Context, node: Node) -> Thunk:
    function, axes = node.prepared
    source, initial = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data
    start = initial.reshape(())
    # Halves are summed in single precision and rounded once.
    wide = np.dtype(np.float32) if node.inputs[0].type in HALVES else source.dtype
    kept = [axis for axis in range(source.ndim) if axis not in axes]
    rows = source.transpose([*kept, *axes])
    folded = prod(source.shape[axis] for axis in axes)

    def reduce() -> None:
        if not folded:
            output[...] = start
            return
        matrix = rows.reshape(*output.shape, folded).astype(wide, copy=False)
        logical = function in (np.logical_and, np.logical_or)
        value = function.reduce(matrix, axis=-1) if logical else function.reduce(matrix, axis=-1, dtype=wide)
        output[...] = function(start.astype(wide), value)

    return quietly(reduce)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
