"""SPACE_TO_DEPTH: blocks of pixels become blocks of channels. Numerics: tflite/kernels/space_to_depth.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.options import SpaceToDepthOptions

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT32, TensorType.INT64)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *_TYPES)
    ensure_same_type(source, output)
    ensure(source.ndim == 4, f"{source} must have 4 dimensions.")
    block = node.options(SpaceToDepthOptions).block_size
    ensure(block > 0, f"block_size is {block} and must be above zero.")
    batch, height, width, channels = source.shape
    ensure(
        height % block == 0 and width % block == 0,
        f"{source} is {height} x {width}, which blocks of {block} x {block} do not divide.",
    )
    context.resize_tensor(output, (batch, height // block, width // block, channels * block * block))


def bind(context: Context, node: Node) -> Thunk:
    block = node.options(SpaceToDepthOptions).block_size
    source, output = node.inputs[0].data, node.outputs[0].data
    batch, height, width, _ = output.shape
    channels = source.shape[-1]
    blocks = source.reshape(batch, height, block, width, block, channels)
    return copier(output.reshape(batch, height, width, block, block, channels), blocks.transpose(0, 1, 3, 2, 4, 5))


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=_TYPES,
)
