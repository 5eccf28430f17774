"""STABLEHLO_REDUCE_WINDOW: tensors are dilated and padded with their initial values, then their windows are reduced together.

A body of one sum, product, maximum, minimum, and, or is recognised; any other pure one is run, for one value of each window after
the other. Numerics: tflite/kernels/stablehlo_reduce_window.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, checkpoint, ensure, ensure_fits
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_shape, ensure_same_type
from oplet.schema.stablehlo_options import StablehloReduceWindowOptions
from oplet_builtin_ops.control.bodies import Body, prepare_body
from oplet_builtin_ops.control.regions import body_function
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly
from oplet_builtin_ops.layers.program import places, run_calls
from oplet_builtin_ops.layers.window_reduction import (
    REDUCIBLE_TYPES,
    WindowAxis,
    add_fold_scratch,
    ensure_reducible,
    fold_windows,
    window_axes,
)
from oplet_builtin_ops.shaping.interior_padding import AxisPadding, padding_calls
from oplet_builtin_ops.stablehlo import VALUES, attribute, ensure_not_quantized, ensure_values


def prepare(context: Context, node: Node) -> None:
    count = max(1, len(node.inputs) // 2)
    ensure_operands(node, 2 * count, count)
    sources, initials = node.inputs[:count], node.inputs[count:]
    source = sources[0]
    options = node.options(StablehloReduceWindowOptions)
    index = options.body_subgraph_index
    function = body_function(context.callee(index), source.type) if count == 1 and source.type in REDUCIBLE_TYPES else None
    if function is not None:
        ensure_reducible(source, initials[0], node.outputs[0])
    _check(sources, initials, node.outputs)
    rank = source.ndim
    spreads, edges = attribute(options.base_dilations) or [1] * rank, attribute(options.padding) or [0] * (2 * rank)
    ensure(len(spreads) == rank and min(spreads) > 0, f"base_dilations {spreads} must be {rank} numbers above zero.")
    ensure(len(edges) == 2 * rank, f"the padding {edges} must be two numbers for each of {rank} axes.")
    paddings = [
        AxisPadding(dim, low, high, spread - 1) for dim, low, high, spread in zip(source.shape, edges[::2], edges[1::2], spreads)
    ]
    shape = tuple(padding.padded for padding in paddings)
    ensure_fits(
        shape == source.shape or min(shape) > 0,
        f"the padding specification of stablehlo.reduce_window gives an empty tensor: {source}, padded by {edges}.",
    )
    axes = window_axes(
        shape,
        attribute(options.window_dimensions),
        attribute(options.window_strides) or [1] * rank,
        attribute(options.window_dilations) or [1] * rank,
    )
    for output in node.outputs:
        context.resize_tensor(output, [axis.out for axis in axes])
    padded = None if shape == source.shape else [context.add_temporary(node, shape, tensor.type) for tensor in sources]
    if function is None:
        body = prepare_body(context, index, (*sources, *sources), node.outputs, node.outputs[0].size)
        node.prepared = body, paddings, padded, axes, None
        return
    node.prepared = function, paddings, padded, axes, add_fold_scratch(context, node, axes, source.type)


def _check(sources: list[Tensor], initials: list[Tensor], outputs: list[Tensor]) -> None:
    ensure_values(*sources)
    ensure_same_shape(*sources)
    ensure(sources[0].ndim > 0, f"{sources[0]} must have at least 1 dimension.")
    for source, initial, output in zip(sources, initials, outputs):
        ensure_same_type(source, initial)
        ensure_same_type(source, output)
        ensure(initial.size >= 1, f"the initial value {initial} must hold a value.")
        if source.type not in REDUCIBLE_TYPES:
            ensure_not_quantized(source, output)


def bind(context: Context, node: Node) -> Thunk:
    function, paddings, padded, axes, scratch = node.prepared
    count = len(node.outputs)
    sources, initials = ([tensor.data for tensor in tensors] for tensors in (node.inputs[:count], node.inputs[count:]))
    outputs = [tensor.data for tensor in node.outputs]
    maps = sources if padded is None else [tensor.data for tensor in padded]
    if isinstance(function, Body):
        fold = quietly(_fold, function, maps, axes, initials, outputs)
    else:
        fold = fold_windows(function, maps[0], axes, initials[0], scratch, outputs[0])
    if padded is None:
        return fold
    calls = [
        call
        for source, initial, target in zip(sources, initials, maps)
        for call in padding_calls(source, paddings, initial.reshape(-1)[:1], target)
    ]
    pad = run_calls(calls)

    def run() -> None:
        pad()
        fold()

    return run


def _fold(body: Body, maps: list[Array], axes: list[WindowAxis], initials: list[Array], outputs: list[Array]) -> None:
    """Reduce windows by a body: one tap after the other, for all windows at once."""
    size = outputs[0].size
    if not size:
        return
    body.start()
    values = [np.broadcast_to(initial.reshape(-1)[0], (size,)) for initial in initials]
    for taps in places([axis.taps for axis in axes]):
        checkpoint()
        seen = tuple(axis.seen(tap) for axis, tap in zip(axes, taps))
        values = [value.copy() for value in body(*values, *(padded[seen].reshape(-1) for padded in maps))]
    for output, value in zip(outputs, values):
        output[...] = value.reshape(output.shape)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=VALUES,
    differences="a sum or product of booleans is a boolean here, and a NaN in a window makes its maximum and minimum NaN",
)
