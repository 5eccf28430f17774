"""SCATTER_ND, compiled: into a constant shape; the numpy kernel computes and checks the positions."""

from __future__ import annotations

from math import prod
from typing import Final

from oplet import Context, Node, NodeLimits, checkpoint, decline
from oplet_builtin_ops.kit.positions import row_finder
from oplet_builtin_ops.ops.scatter_nd import REGISTRATION as BUILTIN
from oplet_numba_ops.compiling.memory import writable
from oplet_numba_ops.overriding import Bind, Thunk, override
from oplet_numba_ops.shaping.searching import SCATTER
from oplet_numba_ops.threads.splitting import WORTH_VALUES, cut

#: The numbers of a row that are copied in the time of one scattered number.
_SCATTERED: Final = 16


def plan(context: Context, node: Node) -> Bind:
    indices, updates = node.inputs[:2]
    output = node.outputs[0]
    if node.prepared is not True or not output.size or not updates.size:
        decline("its shape is not known yet, or there is nothing to compute.")
    depth = indices.shape[-1]
    compiled = SCATTER[updates.type].compiled()

    def bind() -> Thunk:
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


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[], list(SCATTER)]))
