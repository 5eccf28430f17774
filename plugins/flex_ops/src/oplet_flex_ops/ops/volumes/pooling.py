"""MaxPool3D, AvgPool3D, their gradients MaxPool3DGrad and AvgPool3DGrad, and MaxPoolWithArgmax of images.

Averages count only what lies inside the volume.

Numerics: tensorflow/core/kernels/{pooling_ops_3d.cc,maxpooling_op.cc}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oplet import Node, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import filled, reserve
from oplet_flex_ops.ops.volumes.geometry import Geometry, image_geometry, pool_geometry
from oplet_flex_ops.signature import FLOATS, REALS
from oplet_flex_ops.windows import WindowAxis, taps

_MAX_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16)


def _axes(given: Geometry, shape: Shape) -> list[WindowAxis]:
    return given.axes(given.space(shape), given.window)


def _pooled(given: Geometry, shape: Shape) -> Shape:
    return given.shape(shape[0], [axis.out for axis in _axes(given, shape)], given.depth(shape))


def _pool_shapes(node: Node, given: Geometry) -> list[Shape]:
    source = node.inputs[0]
    given.ensure_rank(source)
    return [_pooled(given, source.shape)]


def _lowest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@filled("MaxPool3D", "input: T -> output: T", _pool_shapes, pool_geometry, T=_MAX_TYPES)
def MAXPOOL3D(given: Geometry, outputs: list[Array], source: Array) -> None:
    pixels, target = given.last(source), given.last(outputs[0])
    target[...] = _lowest(source.dtype)
    for _, to, of in taps(_axes(given, source.shape)):
        checkpoint()
        np.maximum(target[to], pixels[of], out=target[to])


def _counts(axes: list[WindowAxis], dtype: Any) -> Array:
    """Count each window's elements that are not padding; shape of the windows plus a last axis of 1."""
    found: Any = np.ones((), dtype)
    for number, axis in enumerate(axes):
        inside = np.zeros(axis.out, dtype)
        for tap in axis.met:
            inside[axis.tap(tap).out] += 1
        found = found * inside.reshape(-1, *[1] * (len(axes) - number))
    return np.asarray(found)


@filled("AvgPool3D", "input: T -> output: T", _pool_shapes, pool_geometry, T=FLOATS)
def AVGPOOL3D(given: Geometry, outputs: list[Array], source: Array) -> None:
    axes = _axes(given, source.shape)
    target = given.last(outputs[0])
    wide = np.float32 if source.dtype.itemsize == 2 else source.dtype
    reserve(target.shape, 8)
    pixels, total = given.last(source), np.zeros(target.shape, wide)
    for _, to, of in taps(axes):
        checkpoint()
        total[to] += pixels[of]
    target[...] = total / _counts(axes, wide)


def _max_grad_shapes(node: Node, given: Geometry) -> list[Shape]:
    source, pooled, gradient = node.inputs
    given.ensure_rank(source)
    wanted = _pooled(given, source.shape)
    for tensor in (pooled, gradient):
        ensure(tensor.shape == wanted, f"{tensor} must have the shape {list(wanted)} of the pool's result.")
    return [source.shape]


@filled(
    "MaxPool3DGrad",
    "orig_input: TInput, orig_output: TInput, grad: T -> output: T",
    _max_grad_shapes,
    pool_geometry,
    T=_MAX_TYPES,
    TInput=_MAX_TYPES,
)
def MAXPOOL3DGRAD(given: Geometry, outputs: list[Array], source: Array, pooled: Array, gradient: Array) -> None:
    pixels, best, slopes, target = (given.last(array) for array in (source, pooled, gradient, outputs[0]))
    outputs[0].fill(0)
    left = np.ones(best.shape, np.bool_)  # each maximum passes its gradient to the first place where it stands
    for _, to, of in taps(_axes(given, source.shape)):
        checkpoint()
        hit = (pixels[of] == best[to]) & left[to]
        left[to] &= ~hit
        target[of] += np.where(hit, slopes[to], 0).astype(target.dtype)


def _average_grad_shapes(node: Node, given: Geometry) -> list[Shape]:
    sizes, gradient = node.inputs
    source = tuple(read_ints(sizes))
    ensure(len(source) == 5 and min(source) >= 0, f"{sizes} holds {list(source)}; it must be a shape of 5 dimensions.")
    wanted = _pooled(given, source)
    ensure(gradient.shape == wanted, f"{gradient} must have the shape {list(wanted)} of the pool's result.")
    return [source]


@filled("AvgPool3DGrad", "orig_input_shape: INT32[1]!, grad: T -> output: T", _average_grad_shapes, pool_geometry, T=FLOATS)
def AVGPOOL3DGRAD(given: Geometry, outputs: list[Array], sizes: Array, gradient: Array) -> None:
    axes = _axes(given, outputs[0].shape)
    target, slopes = given.last(outputs[0]), given.last(gradient)
    wide = np.float32 if slopes.dtype.itemsize == 2 else slopes.dtype
    shares = slopes / _counts(axes, wide)
    reserve(target.shape, 8)
    total = np.zeros(target.shape, wide)
    for _, to, of in taps(axes):
        checkpoint()
        total[of] += shares[to]
    target[...] = total


class _Numbered(NamedTuple):
    geometry: Geometry
    with_batch: bool


def _numbered(attributes: Attributes) -> _Numbered:
    return _Numbered(image_geometry(attributes, "ksize"), attributes.flag("include_batch_in_index", default=False))


def _argmax_shapes(node: Node, given: _Numbered) -> list[Shape]:
    source = node.inputs[0]
    given.geometry.ensure_rank(source)
    ensure(source.size > 0, f"{source} is empty.")
    return [_pooled(given.geometry, source.shape)] * 2


@filled(
    "MaxPoolWithArgmax",
    "input: T -> output: T, argmax: Targmax",
    _argmax_shapes,
    _numbered,
    T=REALS,
    Targmax=(TensorType.INT64, TensorType.INT32),
)
def MAXPOOLWITHARGMAX(given: _Numbered, outputs: list[Array], source: Array) -> None:
    best, place = outputs
    batch, height, width, depth = source.shape
    best[...] = np.iinfo(source.dtype).min if source.dtype.kind in "iu" else -np.inf
    place.fill(-1)
    numbers = np.arange(height * width * depth).reshape(1, height, width, depth)
    if given.with_batch:
        numbers = numbers + np.arange(batch).reshape(-1, 1, 1, 1) * numbers.size
    for _, to, of in taps(_axes(given.geometry, source.shape)):
        checkpoint()
        higher = (source[of] > best[to]) | (place[to] < 0)
        np.copyto(place[to], numbers[of], where=higher, casting="same_kind")
        np.copyto(best[to], source[of], where=higher)
