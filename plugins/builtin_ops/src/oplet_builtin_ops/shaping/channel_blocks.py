"""DEPTH_TO_SPACE and SPACE_TO_DEPTH: blocks of channels become blocks of pixels, and back.

Numerics: tflite/kernels/depth_to_space.cc, tflite/kernels/space_to_depth.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.options import DepthToSpaceOptions, SpaceToDepthOptions

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT32, TensorType.INT64)
_DEPTH_TYPES = (*_TYPES, TensorType.FLOAT16)


def _check(node: Node, types: tuple[TensorType, ...], block: int) -> Tensor:
    """Check what both have in common; return the input."""
    ensure_operands(node, 1)
    source = node.inputs[0]
    ensure_type(source, *types)
    ensure_same_type(source, node.outputs[0])
    ensure(source.ndim == 4, lambda: f"{source} must have 4 dimensions.")
    ensure(block > 0, f"block_size is {block} and must be above zero.")
    return source


def _prepare_pixels(context: Context, node: Node) -> None:
    block = node.options(DepthToSpaceOptions).block_size
    source = _check(node, _DEPTH_TYPES, block)
    batch, height, width, channels = source.shape
    ensure(
        channels % (block * block) == 0,
        lambda: f"{source} has {channels} channels, which blocks of {block} x {block} do not divide.",
    )
    context.resize_tensor(node.outputs[0], (batch, height * block, width * block, channels // (block * block)))


def _bind_pixels(context: Context, node: Node) -> Thunk:
    block = node.options(DepthToSpaceOptions).block_size
    output = node.outputs[0].data
    batch, height, width, _ = node.inputs[0].shape
    channels = output.shape[-1]
    blocks = node.inputs[0].data.reshape(batch, height, width, block, block, channels)
    return copier(output.reshape(batch, height, block, width, block, channels), blocks.transpose(0, 1, 3, 2, 4, 5))


def _prepare_channels(context: Context, node: Node) -> None:
    block = node.options(SpaceToDepthOptions).block_size
    source = _check(node, _TYPES, block)
    batch, height, width, channels = source.shape
    ensure(
        height % block == 0 and width % block == 0,
        lambda: f"{source} is {height} x {width}, which blocks of {block} x {block} do not divide.",
    )
    context.resize_tensor(node.outputs[0], (batch, height // block, width // block, channels * block * block))


def _bind_channels(context: Context, node: Node) -> Thunk:
    block = node.options(SpaceToDepthOptions).block_size
    source, output = node.inputs[0].data, node.outputs[0].data
    batch, height, width, _ = output.shape
    channels = source.shape[-1]
    blocks = source.reshape(batch, height, block, width, block, channels)
    return copier(output.reshape(batch, height, width, block, block, channels), blocks.transpose(0, 1, 3, 2, 4, 5))


DEPTH_TO_SPACE = Registration(prepare=_prepare_pixels, bind=_bind_pixels, pure=True, types=_DEPTH_TYPES)
SPACE_TO_DEPTH = Registration(prepare=_prepare_channels, bind=_bind_channels, pure=True, types=_TYPES)
