"""GATHER_ND: slices selected by indices into the first axes. Numerics: tflite/kernels/gather_nd.cc"""

from __future__ import annotations

from math import prod

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.shaping.positions import row_finder

_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16,
    TensorType.INT32, TensorType.INT64, TensorType.STRING, TensorType.BOOL,
)  # fmt: skip


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, indices = node.inputs
    ensure_type(source, *_TYPES)
    ensure_type(indices, TensorType.INT16, TensorType.INT32, TensorType.INT64)
    ensure(source.ndim >= 1 and indices.ndim >= 1, f"{source} and {indices} must both have at least one dimension.")
    depth = indices.shape[-1]
    ensure(depth <= source.ndim, f"{indices} holds positions of {depth} axes, {source} has only {source.ndim}.")
    context.set_type(node.outputs[0], source.type)
    context.resize_tensor(node.outputs[0], indices.shape[:-1] + source.shape[depth:])


def bind(context: Context, node: Node) -> Thunk:
    source, indices, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    depth = indices.shape[-1]
    slice_size, count = prod(source.shape[depth:]), prod(indices.shape[:-1])
    rows = source.reshape(prod(source.shape[:depth]), slice_size)
    target = output.reshape(count, slice_size)
    if not output.size:
        return lambda: None
    ensure(rows.size > 0, lambda: f"{node.inputs[0]} is empty, so that {node.inputs[1]} can pick nothing from it.")
    picks = row_finder(node.inputs[1], depth, source.shape)

    def run() -> None:
        # Indices were checked; with mode "clip", take writes directly into its target.
        rows.take(picks(), 0, target, "clip")

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=_TYPES,
    differences="a position without coordinates picks the whole tensor, where LiteRT finds it out of bounds",
)
