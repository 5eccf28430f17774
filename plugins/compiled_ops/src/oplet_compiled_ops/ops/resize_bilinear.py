"""RESIZE_BILINEAR, compiled: int8, uint8 and float32 with more than a few channels, to a constant size."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, charge, decline
from oplet.schema.options import ResizeBilinearOptions
from oplet_builtin_ops.ops.resize_bilinear import REGISTRATION as BUILTIN
from oplet_builtin_ops.shaping.interpolation import float_neighbours, integer_neighbours
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.resizing import RESIZE_FLOATS, RESIZE_INT8, RESIZE_UINT8
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each, slots
from oplet_compiled_ops.threads.team import Step, ready, thunk

_KERNELS = {TensorType.FLOAT32: RESIZE_FLOATS, TensorType.INT8: RESIZE_INT8, TensorType.UINT8: RESIZE_UINT8}
#: With no more channels of floats, numpy's matrix products are as fast.
_FEW = 8
#: Bytes of the tables per row and column of the output.
_AXIS_BYTES = 64


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if node.prepared is not True or not output.size:
        decline("its size is not known yet, or there is nothing to compute.")
    if source.type == TensorType.FLOAT32 and source.shape[3] < _FEW:
        decline("numpy's products are as fast for so few channels.")
    options, signed = node.options(ResizeBilinearOptions), source.type == TensorType.INT8
    find = integer_neighbours if signed else float_neighbours
    charge(_AXIS_BYTES * sum(output.shape[1:3]))
    pairs = zip(source.shape[1:3], output.shape[1:3])
    down, across = (find(length, outputs, options.align_corners, options.half_pixel_centers) for length, outputs in pairs)
    kernel = _KERNELS[source.type]
    ready(kernel)
    size = source.shape[2] * source.shape[3]
    lines = output.shape[0] * output.shape[1]
    # A part computes whole rows of the output.
    length = lines * (size + output.shape[2] * max(source.shape[3], _FEW)) // WORTH_VALUES
    ranges = cut(lines, output.size // (WORTH_VALUES // 4), context.num_threads, length=length)
    count = 2 if source.type == TensorType.UINT8 else 1
    charge(4 * size * count * slots(ranges))

    def arrange() -> list[list[Any]]:
        axes: list[list[Any]] = [[axis.lower.astype(np.int64), axis.upper.astype(np.int64)] for axis in (down, across)]
        for axis, found in zip(axes, (down, across)):
            axis += [found.fraction.astype(np.int32), found.one] if signed else [found.fraction.astype(np.float32)]
        return axes

    def bind() -> Thunk:
        arrays = source.data, output.data
        axes = node.cached(("axes", source.shape, output.shape, source.type), (), arrange, shared=True)
        bits = [(down.one * across.one).bit_length() - 1] if signed else []
        rows = [[np.empty(size, np.int32 if signed else np.float32) for _ in range(count)] for _ in range(slots(ranges))]
        parts = each(ranges, lambda some, slot: (*arrays, *some, *rows[slot], *axes[0], *axes[1], *bits))
        return thunk([Step(kernel, parts)], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[list(_KERNELS)]))
