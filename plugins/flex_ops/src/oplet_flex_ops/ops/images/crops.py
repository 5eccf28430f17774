"""Ops that crop images: CropAndResize, ExtractGlimpse and ExtractGlimpseV2.

A glimpse that leaves its image is filled with zeros where the attribute `noise` says so; other noise is random in TensorFlow and
refused here.

Numerics: tensorflow/core/kernels/image/{crop_and_resize_op.cc,attention_ops.cc}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oplet import Node, Registration, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import filled
from oplet_flex_ops.ops.images.sampling import rounded
from oplet_flex_ops.positions import checked

_F = np.float32
_IMAGES = (
    TensorType.FLOAT32, TensorType.FLOAT64, TensorType.FLOAT16, TensorType.UINT8, TensorType.UINT16, TensorType.INT8,
    TensorType.INT16, TensorType.INT32, TensorType.INT64,
)  # fmt: skip


class _Crop(NamedTuple):
    nearest: bool
    outside: float


def _crop_settings(attributes: Attributes) -> _Crop:
    method = attributes.text("method", "bilinear", "nearest", default="bilinear")
    return _Crop(method == "nearest", attributes.number("extrapolation_value", default=0.0))


def _positive_pair(node: Node, position: int) -> list[int]:
    tensor = node.inputs[position]
    ensure(tensor.shape == (2,), f"{tensor} must hold a height and a width.")
    height, width = read_ints(tensor)
    ensure(height > 0 and width > 0, f"{tensor} holds {height} and {width}, which must be above zero.")
    return [height, width]


def _crop_shapes(node: Node, given: Any) -> list[Shape]:
    image, boxes, numbers = node.inputs[:3]
    ensure(image.ndim == 4 and 0 not in image.shape[1:3], f"{image} must be [batch, height, width, channels] with pixels.")
    ensure(
        boxes.shape == (numbers.size, 4) or boxes.size == numbers.size == 0,
        f"{boxes} must have a row of y1, x1, y2, x2 for each of the {numbers.size} numbers of images.",
    )
    return [(numbers.size, *_positive_pair(node, 3), image.shape[3])]


def _sides(low: Any, high: Any, length: int, out: int) -> Any:
    """Return the source positions, along an axis, of a crop's `out` pixels; `low` and `high` are relative to the image."""
    if out > 1:
        return low * _F(length - 1) + np.arange(out, dtype=_F) * ((high - low) * _F(length - 1) / _F(out - 1))
    return np.array([0.5 * np.float64(low + high) * (length - 1)], _F)


@filled(
    "CropAndResize",
    "image: T, boxes: FLOAT32, box_ind: INT32[1], crop_size: INT32[1]! -> crops: FLOAT32",
    _crop_shapes,
    _crop_settings,
    T=_IMAGES,
)
def CROPANDRESIZE(given: _Crop, outputs: list[Array], image: Array, boxes: Array, numbers: Array, size: Array) -> None:
    batch, height, width, _ = image.shape
    _, crop_height, crop_width, _ = outputs[0].shape
    ensure(bool(np.isfinite(boxes).all()), "a corner of a box is infinite or NaN.")
    for target, (y1, x1, y2, x2), number in paced(
        zip(outputs[0], boxes, checked(numbers, batch, "the number of an image (box_ind)")), 1
    ):
        checkpoint()
        source = image[number].astype(_F)
        with np.errstate(over="ignore", invalid="ignore"):
            rows, columns = _sides(y1, y2, height, crop_height), _sides(x1, x2, width, crop_width)
            inside = ((rows >= 0) & (rows <= height - 1))[:, None] & ((columns >= 0) & (columns <= width - 1))
            rows, columns = (np.clip(np.nan_to_num(place), 0, top) for place, top in ((rows, height - 1), (columns, width - 1)))
        target[...] = _pick(source, rows, columns, given.nearest)
        target[~inside] = given.outside


def _pick(source: Array, rows: Array, columns: Array, nearest: bool) -> Any:
    if nearest:
        near = [rounded(place).astype(np.intp) for place in (rows, columns)]
        return source[np.minimum(near[0], len(source) - 1)[:, None], np.minimum(near[1], source.shape[1] - 1)]
    (top, bottom), (left, right) = ((np.floor(p).astype(np.intp), np.ceil(p).astype(np.intp)) for p in (rows, columns))
    across, down = (columns - left.astype(_F))[:, None], (rows - top.astype(_F))[:, None, None]
    upper, lower = (source[side][:, left] + (source[side][:, right] - source[side][:, left]) * across for side in (top, bottom))
    return upper + (lower - upper) * down


class _Glimpse(NamedTuple):
    centered: bool
    normalized: bool
    noise: str


def _glimpse_settings(attributes: Attributes) -> _Glimpse:
    noise = attributes.text("noise", "uniform", "gaussian", "zero", default="uniform")
    uniform = attributes.flag("uniform_noise", default=True)
    return _Glimpse(
        attributes.flag("centered", default=True),
        attributes.flag("normalized", default=True),
        "uniform" if uniform and noise == "uniform" else noise,
    )


def _glimpse_shapes(node: Node, given: Any) -> list[Shape]:
    image, _, offsets = node.inputs
    ensure(image.ndim == 4, f"{image} must be [batch, height, width, channels].")
    ensure(offsets.shape == (image.shape[0], 2), f"{offsets} must have a row of two for each of the {image.shape[0]} images.")
    return [(image.shape[0], *_positive_pair(node, 1), image.shape[3])]


def _glimpse(version: int) -> Any:
    def place(given: _Glimpse, offset: float, length: int, window: int) -> int:
        """Return the first pixel of a glimpse of `window` pixels, at the node's `offset`, along an axis of `length` pixels."""
        at = _F(offset)
        if given.normalized:
            at *= _F(length)
        if given.centered and (version == 1 or given.normalized):
            at = at / _F(2) + _F(length) / _F(2)
        elif given.centered:
            at += _F(length) / _F(2)
        if version == 1 or (given.normalized and given.centered):
            at -= _F(window) / _F(2)
        ensure(abs(at) < 2**62, f"the offset {offset} is beyond all images.")
        return int(at)

    def compute(given: _Glimpse, outputs: list[Array], image: Array, size: Array, offsets: Array) -> None:
        _, height, width, _ = image.shape
        _, rows, columns, _ = outputs[0].shape
        for target, source, (y, x) in paced(zip(outputs[0], image, offsets.tolist()), 1):
            top, left = place(given, y, height, rows), place(given, x, width, columns)
            inside = 0 <= top <= height - rows and 0 <= left <= width - columns
            ensure(
                inside or given.noise == "zero",
                f"the glimpse at {top}, {left} leaves its image and is to be filled with {given.noise} noise, which is random; "
                "convert with noise='zero', or install oplet-flex-delegate.",
            )
            target.fill(0)
            first, last = (max(top, 0), max(left, 0)), (min(top + rows, height), min(left + columns, width))
            if first[0] < last[0] and first[1] < last[1]:
                part = source[first[0] : last[0], first[1] : last[1]]
                target[first[0] - top : last[0] - top, first[1] - left : last[1] - left] = part

    return compute


def _glimpse_op(op: str, version: int) -> Registration:
    text = "input: FLOAT32, size: INT32[1]!, offsets: FLOAT32[2] -> glimpse: FLOAT32"
    return filled(op, text, _glimpse_shapes, _glimpse_settings)(_glimpse(version))


EXTRACTGLIMPSE = _glimpse_op("ExtractGlimpse", 1)
EXTRACTGLIMPSEV2 = _glimpse_op("ExtractGlimpseV2", 2)
