"""STABLEHLO_DYNAMIC_SLICE: a block of a tensor at a position that is an input, clamped so that the block is inside of the
tensor.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.stablehlo_options import StablehloDynamicSliceOptions
from oplet_builtin_ops.shaping.slice_updates import clamped_starts, ensure_scalar_starts
from oplet_builtin_ops.stablehlo import VALUES, attribute, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, max(1, len(node.inputs)))
    source, *starts = node.inputs
    ensure_values(source)
    ensure_same_type(source, node.outputs[0])
    ensure_scalar_starts(source, starts)
    sizes = attribute(node.options(StablehloDynamicSliceOptions).slice_sizes)
    ensure(
        len(sizes) == source.ndim and all(0 <= size <= dim for size, dim in zip(sizes, source.shape)),
        f"slice_sizes {sizes} must be one size for each axis of {source}, none larger than the axis.",
    )
    context.resize_tensor(node.outputs[0], sizes)


def bind(context: Context, node: Node) -> Thunk:
    source, *starts = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data

    def run() -> None:
        begins = clamped_starts([int(start.item()) for start in starts], source.shape, output.shape)
        output[...] = source[tuple(slice(begin, begin + size) for begin, size in zip(begins, output.shape))]

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
