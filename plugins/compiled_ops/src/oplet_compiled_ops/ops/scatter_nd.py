"""SCATTER_ND, compiled: into a constant shape. For many updates the numpy kernel computes and checks the positions."""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from oplet import Context, Node, NodeLimits, Tensor, TensorType, checkpoint, decline
from oplet_builtin_ops.ops.scatter_nd import REGISTRATION as BUILTIN
from oplet_builtin_ops.shaping.positions import row_finder
from oplet_compiled_ops.library.memory import Array, flat, writable
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.picking import scatter_kernel
from oplet_compiled_ops.shaping.searching import SCATTER
from oplet_compiled_ops.threads.failing import failing
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The numbers of a row that are copied in the time of one scattered number.
_SCATTERED: Final = 16
#: The most numbers of updates and output together that one call reads and writes, positions included.
_FEW: Final = 1 << 14


def plan(context: Context, node: Node) -> Bind:
    indices, updates = node.inputs[:2]
    output = node.outputs[0]
    if node.prepared is not True or not output.size or not updates.size:
        decline("its shape is not known yet, or there is nothing to compute.")
    depth = indices.shape[-1]
    if output.size + updates.size <= _FEW and depth:
        return _plan_few(indices, updates, output)
    if updates.type not in SCATTER:
        decline("its numbers are of a kind of which it adds only a few.")
    kernel = SCATTER[updates.type]
    kernel.entry()

    def bind() -> Thunk:
        compiled = kernel.compiled()
        size, count = prod(output.shape[depth:]), prod(indices.shape[:-1])
        target = output.data.reshape(prod(output.shape[:depth]), size)
        slices, places = writable(updates.data).reshape(count, size), row_finder(indices, depth, output.shape)
        # A scattered slice of one number takes as long as so many numbers of a row.
        ranges = cut(count, 1, 1, length=count * max(size, _SCATTERED) // WORTH_VALUES)
        if len(ranges) == 1:
            return lambda: compiled(places(), slices, target, 0, count)

        def run() -> None:
            found = places()
            for first, last in ranges:
                compiled(found, slices, target, first, last)
                checkpoint()

        return run

    return bind


def _plan_few(indices: Tensor, updates: Tensor, output: Tensor) -> Bind:
    depth, shape = indices.shape[-1], output.shape
    kernel = scatter_kernel("i4", f"{updates.dtype.kind}{updates.dtype.itemsize}")
    ready(kernel)
    strides = np.array([prod(shape[axis + 1 :]) for axis in range(depth)], np.int64)
    bounds, failed = np.array(shape[:depth], np.int64), np.zeros(1, np.int64)
    if indices.is_constant:
        row_finder(indices, depth, shape)  # raises what numpy's kernel, which serves the node then, raises when it runs

    def bind() -> Thunk:
        arrays = flat(updates.data), flat(indices.data), flat(output.data), bounds, strides, failed
        scatter = thunk([Step(kernel, [(*arrays, prod(indices.shape[:-1]), depth, prod(shape[depth:]))])])
        if indices.is_constant:
            return scatter
        find = row_finder(indices, depth, shape)

        def fail(_mark: Array) -> None:
            find()  # raises

        return failing(scatter, failed, fail)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.INT32], [*SCATTER, TensorType.INT64]]))
