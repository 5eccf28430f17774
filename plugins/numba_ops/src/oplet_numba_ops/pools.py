"""Pools: which of their nodes compiled loops serve."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.schema.options import Pool2DOptions
from oplet_builtin_ops.arithmetic.fixed_point import activation_range, float_activation_range
from oplet_builtin_ops.layers.windows import Axis
from oplet_numba_ops.flat import worth_sharing
from oplet_numba_ops.kernels import Kernel
from oplet_numba_ops.overriding import Bind, Thunk, override
from oplet_numba_ops.shares import WORTH_VALUES, cut
from oplet_numba_ops.team import Step, ready, thunk
from oplet_numba_ops.windows import AVERAGE_FLOATS, AVERAGE_INTEGERS, MAXIMUM

__all__ = ["pool_registration"]


def pool_registration(builtin: Registration, averages: bool) -> Registration:
    """The registration of AVERAGE_POOL_2D or MAX_POOL_2D."""

    def plan(context: Context, node: Node) -> Bind | None:
        source, output = node.inputs[0], node.outputs[0]
        rows, columns = node.prepared
        if not output.size or not _filled(rows) or not _filled(columns):
            return None
        small = rows.filter * columns.filter <= 4 and not worth_sharing(context, source.size)
        if not averages and (output.type != TensorType.FLOAT32 or small):
            return None  # numpy is as fast
        activation = node.options(Pool2DOptions).fused_activation_function
        low: Any
        high: Any
        if output.type == TensorType.FLOAT32:
            low, high = float_activation_range(activation)
        else:
            low, high = activation_range(activation, output.type, output.scale, output.zero_point)
        kernel = _kernel(output.type, averages)
        ready(kernel)
        if averages and output.type != TensorType.FLOAT32:
            bounds = low, high
        else:
            bounds = output.dtype.type(low), output.dtype.type(high)
        worth = source.size // WORTH_VALUES
        ranges = cut(output.shape[0] * output.shape[1], worth, context.num_threads)
        geometry = [
            np.array(pair, np.int64)
            for pair in ((rows.filter, columns.filter), (rows.stride, columns.stride), (rows.before, columns.before))
        ]

        def bind() -> Thunk:
            wide = np.dtype(np.int32) if averages and output.type != TensorType.FLOAT32 else output.dtype
            channels = source.shape[3]
            parts = []
            for first, last in ranges:
                scratch = [np.empty(size, wide) for size in (source.shape[2] * channels, channels)[: 1 + averages]]
                parts.append((source.data, output.data, first, last, *scratch, *bounds, *geometry))
            return thunk([Step(kernel, parts)], context.num_threads)

        return bind

    return override(builtin, plan)


def _filled(axis: Axis) -> bool:
    """Whether each window has at least one tap inside the map."""
    return axis.before < axis.filter and (axis.out - 1) * axis.stride - axis.before < axis.size


def _kernel(type: TensorType, averages: bool) -> Kernel:
    if not averages:
        return MAXIMUM
    return AVERAGE_FLOATS if type == TensorType.FLOAT32 else AVERAGE_INTEGERS[type]
