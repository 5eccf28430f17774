"""STABLEHLO_SLICE: values from a start to a limit with a stride, along each axis."""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.stablehlo_options import StablehloSliceOptions
from oplet_builtin_ops.stablehlo import VALUES, attribute, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_values(source)
    ensure_same_type(source, output)
    options = node.options(StablehloSliceOptions)
    starts, limits, strides = (attribute(v) for v in (options.start_indices, options.limit_indices, options.strides))
    rank = source.ndim
    ensure(
        len(starts) == len(limits) == len(strides) == rank,
        f"starts {starts}, limits {limits} and strides {strides} must be {rank} numbers each, one for each axis of {source}.",
    )
    for start, limit, stride, dim in zip(starts, limits, strides, source.shape):
        ensure(
            0 <= start <= limit <= dim and stride > 0,
            f"a slice from {start} to {limit} in steps of {stride} is not inside a dimension of {dim}.",
        )
    node.prepared = tuple(map(slice, starts, limits, strides))
    context.resize_tensor(output, [-(-(limit - start) // stride) for start, limit, stride in zip(starts, limits, strides)])


def bind(context: Context, node: Node) -> Thunk:
    return copier(node.outputs[0].data, node.inputs[0].data[node.prepared])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
