"""Conv3D, and its gradients Conv3DBackpropInputV2 (a transposed convolution) and Conv3DBackpropFilterV2.

For each element of the filter one matrix product of all windows at once.

Numerics: tensorflow/core/kernels/{conv_ops_3d.cc,conv_grad_ops_3d.cc}

Dilation2D: the maximum of image plus filter over each window (grey-scale morphology).

Numerics: tensorflow/core/kernels/dilation_ops.cc
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from oplet import Node, Tensor, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet_flex_ops.kernel import filled, reserve
from oplet_flex_ops.numerics.dense import PORTION, portions
from oplet_flex_ops.ops.volumes.geometry import Geometry, image_geometry, volume_geometry
from oplet_flex_ops.signature import FLOATS, INDICES, REALS
from oplet_flex_ops.windows import WindowAxis, taps


def _ensure_filter(given: Geometry, source: Shape, weights: Shape, source_of: Any) -> int:
    """Return the number of channel groups, after checking that the filters' shape fits."""
    depth = given.depth(source)
    ensure(
        len(weights) == 5 and 0 not in weights and depth % weights[3] == 0 and depth > 0,
        f"the channels of {source_of}, {depth}, must be those of the filters of shape {list(weights)}, or a multiple.",
    )
    groups = depth // weights[3]
    ensure(weights[4] % groups == 0, f"{weights[4]} filters cannot be shared among {groups} groups of channels.")
    return groups


def _axes(given: Geometry, source: Shape, weights: Shape) -> list[WindowAxis]:
    ensure(0 not in given.space(source), f"the shape {list(source)} has no room.")
    return given.axes(given.space(source), weights[:3])


def _out(given: Geometry, source: Shape, weights: Shape) -> Shape:
    return given.shape(source[0], [axis.out for axis in _axes(given, source, weights)], weights[4])


def _conv_shapes(node: Node, given: Geometry) -> list[Shape]:
    source, weights = node.inputs
    given.ensure_rank(source)
    _ensure_filter(given, source.shape, weights.shape, source)
    return [_out(given, source.shape, weights.shape)]


def _wide(array: Array) -> Array:
    """Convert half values to float32 for multiplication."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


@filled("Conv3D", "input: T, filter: T -> output: T", _conv_shapes, volume_geometry, T=FLOATS)
def CONV3D(given: Geometry, outputs: list[Array], source: Array, weights: Array) -> None:
    axes = _axes(given, source.shape, weights.shape)
    pixels, filters, target = given.last(_wide(source)), _wide(weights), given.last(outputs[0])
    groups = pixels.shape[-1] // weights.shape[3]
    reserve(target.shape, 2 * pixels.itemsize)
    total = np.zeros((*target.shape[:-1], groups, weights.shape[4] // groups), pixels.dtype)
    for position, to, of in taps(axes):
        checkpoint()
        part = pixels[of]
        reserve(part.shape, part.itemsize)
        if groups == 1:
            total[to][..., 0, :] += part @ filters[position]
        else:
            grouped = part.reshape(*part.shape[:-1], groups, 1, weights.shape[3])
            by_group = filters[position].reshape(weights.shape[3], groups, -1).transpose(1, 0, 2)
            total[to] += (grouped @ by_group)[..., 0, :]
    target[...] = total.reshape(target.shape)


def _sizes(tensor: Tensor) -> Shape:
    sizes = read_ints(tensor)
    ensure(len(sizes) == 5 and min(sizes) >= 0, f"{tensor} holds {sizes}; it must be a shape of 5 dimensions.")
    return tuple(sizes)


def _ensure_gradient(given: Geometry, source: Shape, weights: Shape, gradient: Tensor) -> None:
    """Raise an error unless the gradient has the shape of the convolution's output."""
    ensure(prod(source) < 1 << 62, f"the shape {list(source)} has more elements than can be addressed.")
    _ensure_filter(given, source, weights, "the input")
    wanted = _out(given, source, weights)
    ensure(gradient.shape == wanted, f"{gradient} must have the shape {list(wanted)} of the convolution's result.")


def _input_shapes(node: Node, given: Geometry) -> list[Shape]:
    sizes, weights, gradient = node.inputs
    source = _sizes(sizes)
    _ensure_gradient(given, source, weights.shape, gradient)
    ensure(given.depth(source) == weights.shape[3], f"{weights} takes {weights.shape[3]} channels, not {given.depth(source)}.")
    return [source]


@filled(
    "Conv3DBackpropInputV2",
    "input_sizes: Tshape[1]!, filter: T, out_backprop: T -> output: T",
    _input_shapes,
    volume_geometry,
    T=FLOATS,
    Tshape=INDICES,
)
def CONV3DBACKPROPINPUTV2(given: Geometry, outputs: list[Array], sizes: Array, weights: Array, gradient: Array) -> None:
    axes = _axes(given, outputs[0].shape, weights.shape)
    target, pixels, filters = given.last(outputs[0]), given.last(_wide(gradient)), _wide(weights)
    reserve(target.shape, pixels.itemsize)
    total = np.zeros(target.shape, pixels.dtype)
    for position, to, of in taps(axes):
        checkpoint()
        total[of] += pixels[to] @ filters[position].T
    target[...] = total


def _filter_shapes(node: Node, given: Geometry) -> list[Shape]:
    source, sizes, gradient = node.inputs
    given.ensure_rank(source)
    weights = _sizes(sizes)
    _ensure_gradient(given, source.shape, weights, gradient)
    ensure(given.depth(source.shape) == weights[3], f"filters of {weights[3]} channels do not fit {source}.")
    return [weights]


@filled(
    "Conv3DBackpropFilterV2",
    "input: T, filter_sizes: INT32[1]!, out_backprop: T -> output: T",
    _filter_shapes,
    volume_geometry,
    T=FLOATS,
)
def CONV3DBACKPROPFILTERV2(given: Geometry, outputs: list[Array], source: Array, sizes: Array, gradient: Array) -> None:
    axes = _axes(given, source.shape, outputs[0].shape)
    pixels, slopes = given.last(_wide(source)), given.last(_wide(gradient))
    outputs[0].fill(0)
    for position, to, of in taps(axes):
        checkpoint()
        part, slope = pixels[of], slopes[to]
        total = np.zeros(outputs[0].shape[-2:], part.dtype)
        for some in portions(part.shape[:-1], max(1, 4 * PORTION // max(part.shape[-1], slope.shape[-1]))):
            total += part[some].reshape(-1, part.shape[-1]).T @ slope[some].reshape(-1, slope.shape[-1])
        outputs[0][position] = total


def _shapes(node: Node, given: Geometry) -> list[Shape]:
    source, filters = node.inputs
    given.ensure_rank(source)
    ensure(
        filters.ndim == 3 and 0 not in filters.shape and filters.shape[2] == source.shape[3],
        f"{filters} must be [height, width, {source.shape[3]}], with the channels of {source}.",
    )
    axes = given.axes(source.shape[1:3], filters.shape[:2])
    return [(source.shape[0], *(axis.out for axis in axes), source.shape[3])]


@filled(
    "Dilation2D",
    "input: T, filter: T -> output: T",
    _shapes,
    lambda attributes: image_geometry(attributes, dilations="rates"),
    T=REALS,
)
def DILATION2D(given: Geometry, outputs: list[Array], source: Array, filters: Array) -> None:
    output = outputs[0]
    output[...] = np.iinfo(source.dtype).min if source.dtype.kind in "iu" else -np.inf
    for position, to, of in taps(given.axes(source.shape[1:3], filters.shape[:2])):
        checkpoint()
        np.maximum(output[to], source[of] + filters[position], out=output[to])
