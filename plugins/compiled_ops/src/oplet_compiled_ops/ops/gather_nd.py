"""GATHER_ND, compiled: slices of a few values."""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_builtin_ops.ops.gather_nd import REGISTRATION as BUILTIN
from oplet_builtin_ops.shaping.positions import row_finder
from oplet_compiled_ops.library.memory import Array, flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.picking import pick_kernel
from oplet_compiled_ops.threads.failing import failing
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most numbers of the output.
_MOST = 1 << 16


def plan(context: Context, node: Node) -> Bind:
    source, indices = node.inputs
    output = node.outputs[0]
    if not 0 < output.size <= _MOST or source.dtype.hasobject or source.dtype.itemsize > 8:
        decline("there is nothing to pick, so much that numpy is as fast, or its values are no numbers.")
    depth = indices.shape[-1]
    kernel = pick_kernel(f"i{indices.dtype.itemsize}", f"u{source.dtype.itemsize}")
    ready(kernel)
    size, count = prod(source.shape[depth:]), prod(indices.shape[:-1])
    strides = np.array([prod(source.shape[axis + 1 :]) for axis in range(depth)], np.int64)
    bounds, failed = np.array(source.shape[:depth], np.int64), np.zeros(1, np.int64)
    if indices.is_constant:
        row_finder(indices, depth, source.shape)  # raises what numpy's kernel, which serves the node then, raises when it runs

    def bind() -> Thunk:
        bits = f"u{source.dtype.itemsize}"
        arrays = flat(source.data).view(bits), flat(indices.data), flat(output.data).view(bits), bounds, strides, failed
        pick = thunk([Step(kernel, [(*arrays, count, depth, size)])])
        if indices.is_constant:
            return pick
        find = row_finder(indices, depth, source.shape)

        def fail(_mark: Array) -> None:
            find()  # raises

        return failing(pick, failed, fail)

    return bind


_INDICES = [TensorType.INT16, TensorType.INT32, TensorType.INT64]

REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[], _INDICES]))
