"""CONV_3D_TRANSPOSE: each value of a volume, times every filter, is added to the outputs around its position.

With VALID padding the output may have any size, as with TRANSPOSE_CONV: what is beyond it is cut off.

Numerics: tflite/kernels/conv3d_transpose.cc, tflite/kernels/internal/reference/conv3d_transpose.h
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet.kernels.windows import Axis
from oplet.schema.options import Conv3DOptions
from oplet_builtin_ops.layers.convolution_nd import window_axes_3d
from oplet_builtin_ops.layers.float_layer import FloatFinish
from oplet_builtin_ops.layers.program import Call, places, run_program
from oplet_builtin_ops.layers.weights import ensure_bias
from oplet_builtin_ops.shaping.interior_padding import AxisPadding


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3, optional=1)
    shape, weights, source = node.inputs[:3]
    ensure_type(shape, TensorType.INT32)
    for tensor in (weights, source, node.outputs[0]):
        ensure_type(tensor, TensorType.FLOAT32)
    for tensor in (weights, source):
        ensure(tensor.ndim == 5, f"{tensor} must have 5 dimensions.")
    ensure(shape.shape == (5,), f"the output shape {shape} must have shape [5].")
    ensure(
        source.shape[4] == weights.shape[4],
        f"{source} has {source.shape[4]} channels, the filters {weights} take {weights.shape[4]}.",
    )
    ensure_bias(node.optional_input(3), weights.shape[3], TensorType.FLOAT32)
    windows = source.size // max(1, source.shape[0] * source.shape[4])
    context.add_temporary(node, (windows, *weights.shape[:4]), TensorType.FLOAT32)
    defer_or_resize(context, node, [shape], _shapes)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[:1])


def _axes(node: Node, shape: list[int]) -> list[Axis]:
    """Return the windows of the forward convolution whose transpose this is: its input is this op's output."""
    return window_axes_3d(node.options(Conv3DOptions), shape[1:4], node.inputs[1].shape[:3], node.inputs[2].shape[1:4])


def _shapes(node: Node) -> list[Shape]:
    shape_tensor, weights, source = node.inputs[:3]
    shape = read_ints(shape_tensor)
    ensure(min(shape) >= 0, f"the output shape {shape} must not be negative.")
    ensure(shape[0] == source.shape[0], f"the output shape {shape} has another batch size than {source}.")
    ensure(shape[4] == weights.shape[3], f"the output shape {shape} has other channels than the filters {weights}.")
    sizes = [axis.out for axis in _axes(node, shape)]
    ensure(
        sizes == list(source.shape[1:4]),
        f"an output of shape {shape} belongs to an input of {sizes} along depth, height and width, not to {source}.",
    )
    return [tuple(shape)]


def _tap(axis: Axis, inputs: int, tap: int) -> tuple[slice, slice]:
    """Return, for one filter tap along an axis, the slice of outputs to add to and the slice of inputs that contribute."""
    low = tap * axis.dilation - axis.before
    high = axis.size - ((inputs - 1) * axis.stride + 1) - low
    return AxisPadding(inputs, low, high, axis.stride - 1).places()


def _bind(node: Node) -> Thunk:
    _, weights, source = (tensor.data for tensor in node.inputs[:3])
    bias, output = node.optional_input(3), node.outputs[0].data
    finish = FloatFinish(
        None if bias is None else bias.data,
        bias is not None and bias.is_constant,
        node.options(Conv3DOptions).fused_activation_function,
    )
    products = node.temporaries[0].data
    sizes, taps, channels = source.shape[1:4], weights.shape[:3], source.shape[4]
    matrix = weights.reshape(-1, channels).T
    spread = products.reshape(*sizes, *weights.shape[:4])
    axes = _axes(node, list(output.shape))

    def calls() -> Iterator[Call]:
        yield output.fill, (0,)
        for image, target in zip(source, output) if source.size and output.size else ():
            yield np.matmul, (image.reshape(-1, channels), matrix, products.reshape(len(products), -1))
            for tap in places(taps):
                where, taken = zip(*map(_tap, axes, sizes, tap))
                hit = target[where]
                if hit.size:
                    yield np.add, (hit, spread[taken + tap], hit)
        yield from finish.calls(output.reshape(-1, weights.shape[3] or 1))

    return run_program(calls)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="with VALID padding an output smaller than what the input covers is cut off, where LiteRT refuses it",
)
