"""Convolutions, pools, matrix products and resizes."""

from __future__ import annotations

import struct
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from oplet import Node, Tensor
from oplet.kernels.windows import padding_around
from oplet.schema.enums import FullyConnectedOptionsWeightsFormat, Padding
from oplet.schema.options import (
    BatchMatMulOptions,
    Conv2DOptions,
    Conv3DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Pool2DOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    TransposeConvOptions,
)
from oplet_xla_delegate.activations import activated, refuses_activation
from oplet_xla_delegate.tracing import Trace
from oplet_xla_delegate.translators import MOVED, translates


def _padding(padding: Padding, sizes: Any, taps: Any, strides: Any, dilations: Any = (1, 1, 1)) -> list[tuple[int, int]]:
    return [padding_around(*numbers[:3], padding, numbers[3]) for numbers in zip(sizes, taps, strides, dilations)]


def _with_bias(value: Any, bias: tuple[Any, ...]) -> Any:
    return value + bias[0].reshape(-1) if bias and bias[0] is not None else value


def _refuses_window(node: Node, options: Any, *numbers: int) -> str:
    if min(numbers) < 1:
        return f"one of its strides, sizes or dilations is below 1: {list(numbers)}"
    return refuses_activation(node, options)


def _refuses_filters(data: Tensor, weights: Tensor, rank: int) -> str:
    return "" if data.ndim == weights.ndim == rank else f"it wants {rank} dimensions, not {data} and {weights}"


def _window(options: Any) -> tuple[list[int], list[int]]:
    return [options.stride_h, options.stride_w], [options.dilation_h_factor, options.dilation_w_factor]


def _refuses_conv_2d(node: Node) -> str:
    (strides, dilations), (data, weights) = _window(node.options(Conv2DOptions)), node.inputs[:2]
    reason = _refuses_filters(data, weights, 4)
    if not reason and (data.shape[3] % weights.shape[3] or weights.shape[0] % (data.shape[3] // weights.shape[3])):
        reason = f"{weights} does not fit the channels of {data}"
    return reason or _refuses_window(node, Conv2DOptions, *strides, *dilations)


@translates("CONV_2D", newest=8, inputs=(2, 3), optional=(2,), refuses=_refuses_conv_2d, real=True, bias=2)
def _conv_2d(trace: Trace, node: Node, x: Any, w: Any, *bias: Any) -> Any:
    options = node.options(Conv2DOptions)
    strides, dilations = _window(options)
    made = trace.product(
        lax.conv_general_dilated,
        x,
        w,
        window_strides=strides,
        padding=_padding(options.padding, x.shape[1:3], w.shape[1:3], strides, dilations),
        rhs_dilation=dilations,
        dimension_numbers=("NHWC", "OHWI", "NHWC"),
        feature_group_count=x.shape[3] // w.shape[3],
    )
    return activated(_with_bias(made, bias), node, Conv2DOptions)


def _refuses_depthwise(node: Node) -> str:
    (strides, dilations), (data, weights) = _window(node.options(DepthwiseConv2DOptions)), node.inputs[:2]
    reason = _refuses_filters(data, weights, 4)
    if not reason and weights.shape[3] % data.shape[3]:
        reason = f"{weights} does not fit the channels of {data}"
    return reason or _refuses_window(node, DepthwiseConv2DOptions, *strides, *dilations)


@translates("DEPTHWISE_CONV_2D", newest=7, inputs=(2, 3), optional=(2,), refuses=_refuses_depthwise, real=True, bias=2)
def depthwise_conv_2d(trace: Trace, node: Node, x: Any, w: Any, *bias: Any) -> Any:
    """Return the outputs of DEPTHWISE_CONV_2D as traced jax values: on a CPU sums of shifted products, which XLA runs faster."""
    options = node.options(DepthwiseConv2DOptions)
    (strides, dilations), (_, height, width, out) = _window(options), w.shape
    edges = _padding(options.padding, x.shape[1:3], (height, width), strides, dilations)
    if trace.platform == "cpu" and out == x.shape[3]:
        made = _shifted(node, x, w, strides, dilations, edges)
    else:
        made = trace.product(
            lax.conv_general_dilated,
            x,
            w.reshape(height, width, 1, out),
            window_strides=strides,
            padding=edges,
            rhs_dilation=dilations,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=x.shape[3],
        )
    return activated(_with_bias(made, bias), node, DepthwiseConv2DOptions)


def _shifted(node: Node, x: Any, w: Any, strides: Any, dilations: Any, edges: Any) -> Any:
    rows, columns = node.outputs[0].shape[1:3]
    # VALID windows may end before the image does, and SAME ones are padded to fit.
    padded, total = jnp.pad(x, [(0, 0), *edges, (0, 0)]), None
    for i in range(w.shape[1]):
        for j in range(w.shape[2]):
            at = i * dilations[0], j * dilations[1]
            end = at[0] + (rows - 1) * strides[0] + 1, at[1] + (columns - 1) * strides[1] + 1
            part = lax.slice(padded, (0, *at, 0), (x.shape[0], *end, x.shape[3]), (1, *strides, 1)) * w[0, i, j]
            total = part if total is None else total + part
    return total


def _refuses_conv_3d(node: Node) -> str:
    options, (data, weights) = node.options(Conv3DOptions), node.inputs[:2]
    reason = _refuses_filters(data, weights, 5)
    numbers = (*_strides_3d(options), *_dilations_3d(options))
    return reason or _refuses_window(node, Conv3DOptions, *numbers)


def _strides_3d(options: Conv3DOptions) -> list[int]:
    return [options.stride_d, options.stride_h, options.stride_w]


def _dilations_3d(options: Conv3DOptions) -> list[int]:
    return [options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor]


@translates("CONV_3D", inputs=(2, 3), optional=(2,), refuses=_refuses_conv_3d)
def _conv_3d(trace: Trace, node: Node, x: Any, w: Any, *bias: Any) -> Any:
    options = node.options(Conv3DOptions)
    strides, dilations = _strides_3d(options), _dilations_3d(options)
    made = trace.product(
        lax.conv_general_dilated,
        x,
        w,
        window_strides=strides,
        padding=_padding(options.padding, x.shape[1:4], w.shape[:3], strides, dilations),
        rhs_dilation=dilations,
        dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
    )
    return activated(_with_bias(made, bias), node, Conv3DOptions)


def _transposed(trace: Trace, x: Any, w: Any, strides: Any, begin: Any, shape: Any) -> Any:
    """Return a transposed convolution, of which so many rows and columns are cut off at the beginning."""
    sizes = zip(x.shape[1:3], w.shape[1:3], shape[1:3], strides, begin)
    edges = [(taps - 1 - before, wanted + before - (size - 1) * stride - 1) for size, taps, wanted, stride, before in sizes]
    return trace.product(
        lax.conv_general_dilated,
        x,
        jnp.flip(w, (1, 2)),
        window_strides=(1, 1),
        padding=edges,
        lhs_dilation=strides,
        dimension_numbers=("NHWC", "OHWI", "NHWC"),
    )


def _refuses_transpose_conv(node: Node) -> str:
    options, (_, weights, data), out = node.options(TransposeConvOptions), node.inputs[:3], node.outputs[0]
    reason = _refuses_filters(data, weights, 4) or _refuses_window(node, TransposeConvOptions, options.stride_h, options.stride_w)
    fits = not reason and weights.shape[3] == data.shape[3] and out.shape[3] == weights.shape[0]
    return reason or ("" if fits else f"{weights} does not fit {data} and {out}")


@translates(
    "TRANSPOSE_CONV",
    newest=5,
    inputs=(3, 4),
    constants=(0,),
    optional=(3,),
    refuses=_refuses_transpose_conv,
    real=True,
    bias=3,
)
def _transpose_conv(trace: Trace, node: Node, _: Any, w: Any, x: Any, *bias: Any) -> Any:
    options, shape = node.options(TransposeConvOptions), node.outputs[0].shape
    strides = [options.stride_h, options.stride_w]
    begin = [before for before, _ in _padding(options.padding, shape[1:3], w.shape[1:3], strides)]
    return activated(_with_bias(_transposed(trace, x, w, strides, begin, shape), bias), node, TransposeConvOptions)


def _custom_strides(node: Node) -> list[int]:
    _, across, down = struct.unpack("<3i", bytes(node.custom_options[:12]))
    if min(down, across) < 1:
        raise ValueError(f"its strides are {[down, across]}")
    return [down, across]


def _refuses_transpose_bias(node: Node) -> str:
    _custom_strides(node)
    (data, weights, _), out = node.inputs, node.outputs[0]
    reason = _refuses_filters(data, weights, 4)
    fits = not reason and weights.shape[3] == data.shape[3] and out.ndim == 4 and out.shape[3] == weights.shape[0]
    return reason or ("" if fits else f"{weights} does not fit {data} and {out}")


@translates("Convolution2DTransposeBias", inputs=(3, 3), custom=True, refuses=_refuses_transpose_bias)
def _convolution_2d_transpose_bias(trace: Trace, node: Node, x: Any, w: Any, bias: Any) -> Any:
    strides, shape = _custom_strides(node), node.outputs[0].shape
    sizes = zip(x.shape[1:3], w.shape[1:3], shape[1:3], strides)
    begin = [max((size - 1) * stride + taps - wanted, 0) // 2 for size, taps, wanted, stride in sizes]
    return _with_bias(_transposed(trace, x, w, strides, begin, shape), (bias,))


# Products ------------------------------------------------------------------------------------------------------------------


def _refuses_fully_connected(node: Node) -> str:
    options, (data, weights) = node.options(FullyConnectedOptions), node.inputs[:2]
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return f"its weights are {options.weights_format!r}"
    if weights.ndim != 2 or data.size % weights.shape[1]:
        return f"{weights} does not fit {data}"
    return refuses_activation(node, FullyConnectedOptions)


@translates("FULLY_CONNECTED", newest=14, inputs=(2, 3), optional=(2,), refuses=_refuses_fully_connected, real=True, bias=2)
def _fully_connected(trace: Trace, node: Node, x: Any, w: Any, *bias: Any) -> Any:
    rows = x.reshape(-1, w.shape[1])
    made = _with_bias(trace.product(lax.dot_general, rows, w, dimension_numbers=(((1,), (1,)), ((), ()))), bias)
    return activated(made, node, FullyConnectedOptions).reshape(node.outputs[0].shape)


@translates("BATCH_MATMUL", newest=5, inputs=(2, 2), real=True)
def _batch_matmul(trace: Trace, node: Node, x: Any, y: Any) -> Any:
    options = node.options(BatchMatMulOptions)
    x = jnp.swapaxes(x, -1, -2) if options.adj_x else x
    y = jnp.swapaxes(y, -1, -2) if options.adj_y else y
    return trace.product(jnp.matmul, x, y)


# Pools ---------------------------------------------------------------------------------------------------------------------


def _pool_window(node: Node) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    options = node.options(Pool2DOptions)
    strides, taps = [options.stride_h, options.stride_w], [options.filter_height, options.filter_width]
    return strides, taps, _padding(options.padding, node.inputs[0].shape[1:3], taps, strides)


def _refuses_pool(node: Node) -> str:
    if node.inputs[0].ndim != 4:
        return f"it wants four dimensions, not {node.inputs[0]}"
    options = node.options(Pool2DOptions)
    numbers = (options.stride_h, options.stride_w, options.filter_height, options.filter_width)
    return _refuses_window(node, Pool2DOptions, *numbers)


def _folded(node: Node, x: Any, start: Any, combine: Any) -> Any:
    strides, taps, edges = _pool_window(node)
    return lax.reduce_window(x, start, combine, (1, *taps, 1), (1, *strides, 1), [(0, 0), *edges, (0, 0)])


@translates("MAX_POOL_2D", newest=4, refuses=_refuses_pool, real=True)
def _max_pool_2d(trace: Trace, node: Node, x: Any) -> Any:
    return activated(_folded(node, x, x.dtype.type(-np.inf), lax.max), node, Pool2DOptions)


def _average(node: Node, x: Any) -> Any:
    strides, taps, edges = _pool_window(node)
    # How many values a window has inside of the image is known now.
    ones = np.ones(x.shape[1:3], np.float32)
    padded = np.pad(ones, edges)
    rows, columns = node.outputs[0].shape[1:3]
    counts = np.zeros((rows, columns), np.float32)
    for i in range(taps[0]):
        for j in range(taps[1]):
            counts += padded[
                i : i + (rows - 1) * strides[0] + 1 : strides[0], j : j + (columns - 1) * strides[1] + 1 : strides[1]
            ]
    return _folded(node, x, x.dtype.type(0), lax.add) / jnp.asarray(counts.reshape(1, rows, columns, 1), x.dtype)


@translates("AVERAGE_POOL_2D", newest=4, refuses=_refuses_pool, real=True)
def _average_pool_2d(trace: Trace, node: Node, x: Any) -> Any:
    return activated(_average(node, x), node, Pool2DOptions)


@translates("L2_POOL_2D", refuses=_refuses_pool)
def _l2_pool_2d(trace: Trace, node: Node, x: Any) -> Any:
    return activated(jnp.sqrt(_average(node, x * x)), node, Pool2DOptions)


# Resizes -------------------------------------------------------------------------------------------------------------------


def _scale(size: int, wanted: int, corners: bool) -> Any:
    return np.float32(size - 1) / np.float32(wanted - 1) if corners and wanted > 1 else np.float32(size) / np.float32(wanted)


def _refuses_resize(node: Node) -> str:
    if node.inputs[0].ndim != 4:
        return f"it wants four dimensions, not {node.inputs[0]}"
    options = node.options(ResizeBilinearOptions)
    return "it has both align_corners and half_pixel_centers" if options.align_corners and options.half_pixel_centers else ""


@translates("RESIZE_BILINEAR", newest=4, inputs=(2, 2), constants=(1,), refuses=_refuses_resize, real=True)
def resize_bilinear(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    """Return the outputs of RESIZE_BILINEAR as traced jax values: along each axis a weighted sum of two gathers."""
    options, out = node.options(ResizeBilinearOptions), node.outputs[0]
    for axis in (1, 2):
        size, wanted = x.shape[axis], out.shape[axis]
        scale, places = _scale(size, wanted, options.align_corners), np.arange(wanted, dtype=np.float32)
        real = (places + np.float32(0.5)) * scale - np.float32(0.5) if options.half_pixel_centers else places * scale
        low = np.floor(real)
        first, second = (np.clip(each, 0, size - 1).astype(np.int32) for each in (low, np.ceil(real)))
        share = np.asarray(real - low, np.float32).reshape([-1 if at == axis else 1 for at in range(4)])
        share = jnp.asarray(share, x.dtype)
        x = jnp.take(x, first, axis) * (1 - share) + jnp.take(x, second, axis) * share
    return x


def _refuses_nearest(node: Node) -> str:
    return "" if node.inputs[0].ndim == 4 else f"it wants four dimensions, not {node.inputs[0]}"


@translates("RESIZE_NEAREST_NEIGHBOR", newest=4, inputs=(2, 2), types=MOVED, moves=True, constants=(1,), refuses=_refuses_nearest)
def _resize_nearest_neighbor(trace: Trace, node: Node, x: Any, _: Any) -> Any:
    options, out = node.options(ResizeNearestNeighborOptions), node.outputs[0]
    for axis in (1, 2):
        size, wanted = x.shape[axis], out.shape[axis]
        half = np.float32(0.5 if options.half_pixel_centers else 0)
        real = (np.arange(wanted, dtype=np.float32) + half) * _scale(size, wanted, options.align_corners)
        whole = np.floor(real.astype(np.float64) + 0.5) if options.align_corners else np.floor(real)
        x = jnp.take(x, np.clip(whole.astype(np.int32), 0, size - 1), axis)
    return x
