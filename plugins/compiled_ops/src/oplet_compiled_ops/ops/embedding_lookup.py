"""EMBEDDING_LOOKUP, compiled: rows as they are, or dequantized to float32; of so few bytes that a numpy call would take longer."""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_builtin_ops.ops.embedding_lookup import REGISTRATION as BUILTIN
from oplet_builtin_ops.ops.embedding_lookup import ensure_row, is_plain, row_scales
from oplet_compiled_ops.library.memory import Array, address
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.selecting import DEQUANTIZE_ROWS, gather_kernel
from oplet_compiled_ops.threads.failing import failing
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most bytes of an output; for larger ones numpy is as fast.
_MOST = 1 << 20
#: The values of a packed type per byte.
_PER_BYTE = {TensorType.INT4: 2, TensorType.INT2: 4}


def plan(context: Context, node: Node) -> Bind:
    (numbers, table), output = node.inputs, node.outputs[0]
    if not output.size or not table.size or output.is_dynamic or output.dtype.hasobject:
        decline("there is nothing to copy.")
    if output.size * output.dtype.itemsize > _MOST:
        decline("numpy is as fast for so much.")
    rows, columns = table.shape[0], prod(table.shape[1:])
    plain = is_plain(node)
    if not plain and (output.type is not TensorType.FLOAT32 or columns % _PER_BYTE.get(table.type, 1)):
        decline("it computes float32 of rows that begin with a byte.")
    kernel = gather_kernel("i4") if plain else DEQUANTIZE_ROWS
    ready(kernel)

    def fail(mark: Array) -> None:
        ensure_row(table, int(mark[1]))

    def bind() -> Thunk:
        mark, wanted, y = np.zeros(2, np.int64), numbers.data, output.data
        values = table.data.reshape(rows, columns)
        if plain:
            counts = 1, 1, rows, wanted.size, columns * values.itemsize
            step = Step(kernel, [(address(values), wanted, address(y), mark, *counts)])
            return failing(thunk([step], 1, values, y), mark, fail)
        scales = row_scales(table)
        arguments = values.view(np.int8), wanted, scales.reshape(-1), y.reshape(-1, columns), mark, columns // scales.shape[1]
        return failing(thunk([Step(kernel, [arguments])]), mark, fail)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits())
