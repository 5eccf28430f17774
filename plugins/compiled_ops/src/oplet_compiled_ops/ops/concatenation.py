"""CONCATENATION, compiled, when slices of run-time length are fused into it; otherwise it is plain copies already."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, StalePlanError, Tensor, decline
from oplet_builtin_ops.ops.concatenation import REGISTRATION as BUILTIN
from oplet_builtin_ops.shaping.joined_slices import JoinedSlices
from oplet_compiled_ops.library.memory import Array, Pointers, address
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.selecting import JOIN_SLICES
from oplet_compiled_ops.threads.failing import failing
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most bytes of an output; for larger ones numpy is as fast.
_MOST = 1 << 20


def _early(context: Context, node: Node) -> None:
    if not node.absorbed:
        decline("it is a copy.")


def plan(context: Context, node: Node) -> Bind:
    prepared: JoinedSlices = node.prepared
    axis, source, pieces = prepared
    output = node.outputs[0]
    if not output.size or output.dtype.hasobject or output.nbytes > _MOST:
        decline("there is nothing to copy, or so much that numpy is as fast.")
    ready(JOIN_SLICES)

    def fail(mark: Array) -> None:
        raise StalePlanError(node)

    def bind() -> Thunk:
        x, y = source.data, output.data
        table = np.zeros((len(pieces), 6), np.int64)
        for row, piece in zip(table, pieces):
            if isinstance(piece, Tensor):
                row[:2] = piece.shape[axis], address(piece.data)
            else:
                begin, size = (part.data for part in piece)
                row[:5] = -1, address(begin), begin.itemsize, address(size), size.itemsize
        mark, word = np.zeros(1, np.int64), np.zeros(1, np.int64)
        outer, nbytes = prod(source.shape[:axis]), prod(source.shape[axis + 1 :]) * output.dtype.itemsize
        shape = np.array(source.shape, np.int64)
        step = Step(JOIN_SLICES, [(table.reshape(-1), shape, mark, address(x), address(y), address(word), axis, outer, nbytes)])
        ones = [number for number, row in enumerate(table) if row[0] >= 0]
        both = [number for number, row in enumerate(table) if row[0] < 0]
        places = np.array([6 * n + 1 for n in (*ones, *both)] + [6 * n + 3 for n in both], np.int64)
        kept: list[Any] = [Pointers(table, places)]
        kept += [piece.data for piece in pieces if isinstance(piece, Tensor)]
        kept += [part.data for piece in pieces if not isinstance(piece, Tensor) for part in piece]
        return failing(thunk([step], 1, x, y, word, *kept), mark, fail)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(), _early)
