"""Ops that resize images: ResizeNearestNeighbor, ResizeBilinear, ResizeBicubic, ResizeArea and ScaleAndTranslate.

Numerics: tensorflow/core/kernels/image/{resize_*_op.cc,scale_and_translate_op.cc,sampling_kernels.h},
tensorflow/core/util/image_resizer_state.h
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oplet import Node, Registration, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import filled, reserve
from oplet_flex_ops.numerics.dense import PORTION, multiply, portions, product
from oplet_flex_ops.ops.images.sampling import KERNELS, rounded, spans
from oplet_flex_ops.signature import REALS

_TYPES = tuple(type for type in REALS if type.name not in ("UINT32", "UINT64"))
_F = np.float32


class _Corners(NamedTuple):
    """Alignment of output and input pixels: align_corners or half_pixel_centers."""

    align: bool
    half: bool

    def places(self, size: int, out: int) -> Any:
        """Return the input position, a float, of each output pixel of an axis."""
        scale = self.scale(size, out)
        whole = np.arange(out, dtype=_F)
        return (whole + _F(0.5)) * scale - _F(0.5) if self.half else whole * scale

    def scale(self, size: int, out: int) -> Any:
        return _F(size - 1) / _F(out - 1) if self.align and out > 1 else _F(size) / _F(out)


def _corners(attributes: Attributes) -> _Corners:
    found = _Corners(attributes.flag("align_corners", default=False), attributes.flag("half_pixel_centers", default=False))
    ensure(not (found.align and found.half), "align_corners and half_pixel_centers exclude each other.")
    return found


def _output_size(node: Node) -> tuple[int, int]:
    images, size = node.inputs[:2]
    ensure(images.ndim == 4 and 0 not in images.shape[1:3], f"{images} must be [batch, height, width, channels] with pixels.")
    ensure(size.shape == (2,), f"{size} must hold a height and a width.")
    height, width = read_ints(size)
    ensure(height > 0 and width > 0, f"{size} holds {height} and {width}, which must be above zero.")
    return height, width


def _shapes(node: Node, given: Any) -> list[Shape]:
    images = node.inputs[0]
    height, width = _output_size(node)
    return [(images.shape[0], height, width, images.shape[3])]


def _resize(op: str, compute: Callable[..., None], *, result: str = "FLOAT32", settings: Any = _corners) -> Registration:
    return filled(op, f"images: T, size: INT32[1]! -> resized_images: {result}", _shapes, settings, T=_TYPES)(compute)


def _nearest(corners: _Corners, outputs: list[Array], images: Array, size: Array) -> None:
    picks = []
    for length, out in zip(images.shape[1:3], outputs[0].shape[1:3]):
        whole = np.arange(out, dtype=_F)
        places = (whole + _F(0.5) if corners.half else whole) * corners.scale(length, out)
        near = rounded(places) if corners.align else np.floor(places)
        picks.append(np.clip(near, 0, length - 1).astype(np.intp))
    outputs[0][...] = images[:, picks[0][:, None], picks[1]]


def _bilinear(corners: _Corners, outputs: list[Array], images: Array, size: Array) -> None:
    parts = []
    for length, out in zip(images.shape[1:3], outputs[0].shape[1:3]):
        places = corners.places(length, out)
        low = np.floor(places)
        share = places - low
        below = np.clip(low, 0, length - 1).astype(np.intp)
        above = np.clip(np.ceil(places), 0, length - 1).astype(np.intp)
        parts.append((below, above, share))
    (top, bottom, down), (left, right, across) = parts
    for part in portions(outputs[0].shape):
        batch, y, x, channels = part
        rows = []
        for side in (top[y][:, None], bottom[y][:, None]):
            first, second = (images[batch, side, each[x], channels].astype(_F, copy=False) for each in (left, right))
            rows.append(first + (second - first) * across[x][:, None])
        np.subtract(rows[1], rows[0], out=rows[1])
        np.multiply(rows[1], down[y][:, None, None], out=rows[1])
        np.add(rows[0], rows[1], out=outputs[0][part])


#: Steps of the table of cubic weights between two pixels.
_STEPS = 1024


def _cubic_table(a: float) -> Array:
    """Tabulate the cubic convolution weights for distances 0 to 1 and 1 to 2."""
    near = (np.arange(_STEPS + 1) / _STEPS).astype(_F).astype(np.float64)
    far = near + 1.0
    return np.stack([((a + 2) * near - (a + 3)) * near * near + 1, ((a * far - 5 * a) * far + 8 * a) * far - 4 * a], 1).astype(_F)


def _cubic_weights(corners: _Corners, length: int, out: int) -> tuple[Array, Array]:
    """Return the four source pixels and their weights for each output pixel of an axis, shape (4, out)."""
    places = corners.places(length, out)
    start = np.floor(places)
    offset = np.rint((places - start) * _F(_STEPS)).astype(np.intp)
    table = _cubic_table(-0.5 if corners.half else -0.75)
    weights = np.stack([table[offset, 1], table[offset, 0], table[_STEPS - offset, 0], table[_STEPS - offset, 1]])
    wanted = start.astype(np.intp) + np.array([[-1], [0], [1], [2]])
    pixels = np.clip(wanted, 0, length - 1)
    if corners.half:
        # Keys' form: what lies outside does not count
        weights[pixels != wanted] = 0
        total = weights.sum(0)
        weights /= np.where(np.abs(total) >= 1000 * np.finfo(_F).tiny, total, _F(1))
    return pixels, weights


def _bicubic(corners: _Corners, outputs: list[Array], images: Array, size: Array) -> None:
    (_, height, width, _), (_, out_height, out_width, _) = images.shape, outputs[0].shape
    rows, down = _cubic_weights(corners, height, out_height)
    columns, across = _cubic_weights(corners, width, out_width)
    reserve((len(images), out_height, width, images.shape[3]), 8)
    for batch, y, channels in portions((len(images), out_height, images.shape[3]), max(1, PORTION // max(width, out_width))):
        tall = sum(images[batch, rows[tap][y], :, channels].astype(_F) * down[tap][y][:, None, None] for tap in range(4))
        outputs[0][batch, y, :, channels] = sum(tall[:, :, columns[tap]] * across[tap][:, None] for tap in range(4))


def _area_weights(scale: Any, length: int, out: int) -> Any:
    """Return how much of each input pixel of an axis each output pixel covers, shape (out, length)."""
    reserve((out, length), 16)
    if not scale:
        return np.ones((out, length), _F)  # aligned corners of a single pixel
    begin = (np.arange(out, dtype=_F) * scale)[:, None]
    end = (np.arange(1, out + 1, dtype=_F) * scale)[:, None]
    pixel = np.arange(length, dtype=_F)
    return np.maximum(np.minimum(end, pixel + _F(1)) - np.maximum(begin, pixel), _F(0)) + _outside(end, length)


def _outside(end: Array, length: int) -> Array:
    """Return weights (windows, length) that credit to the last pixel what windows up to `end` cover beyond it."""
    weights = np.zeros((len(end), length), _F)
    weights[:, -1:] = np.maximum(end - _F(length), _F(0))
    return weights


def _area(corners: _Corners, outputs: list[Array], images: Array, size: Array) -> None:
    (_, height, width, _), (_, out_height, out_width, _) = images.shape, outputs[0].shape
    scales = corners.scale(height, out_height), corners.scale(width, out_width)
    down, across = _area_weights(scales[0], height, out_height), _area_weights(scales[1], width, out_width)
    _separable(outputs[0], images, down, across)
    np.multiply(outputs[0], _F(1) / ((scales[0] or _F(1)) * (scales[1] or _F(1))), out=outputs[0])


def _separable(output: Array, images: Array, down: Array, across: Array) -> None:
    """Resize by two matrix products: `down` weights the rows, `across` the columns."""
    batch, height, width, depth = images.shape
    reserve((batch, len(down), width, depth), 4)
    tall = product(down, images.astype(_F, copy=False).reshape(batch, height, width * depth))
    multiply(across, tall.reshape(batch, len(down), width, depth), output)


def _area_corners(attributes: Attributes) -> _Corners:
    return _Corners(attributes.flag("align_corners", default=False), False)


RESIZENEARESTNEIGHBOR = _resize("ResizeNearestNeighbor", _nearest, result="T")
RESIZEBILINEAR = _resize("ResizeBilinear", _bilinear)
RESIZEBICUBIC = _resize("ResizeBicubic", _bicubic)
RESIZEAREA = _resize("ResizeArea", _area, settings=_area_corners)


def _scale_settings(attributes: Attributes) -> tuple[str, bool]:
    return attributes.text("kernel_type", *KERNELS, default="lanczos3"), attributes.flag("antialias", default=True)


def _scale_shapes(node: Node, given: Any) -> list[Shape]:
    for tensor in node.inputs[2:]:
        ensure(tensor.shape == (2,), f"{tensor} must hold two numbers, for height and width.")
    return _shapes(node, given)


@filled(
    "ScaleAndTranslate",
    "images: T, size: INT32[1]!, scale: FLOAT32[1], translation: FLOAT32[1] -> resized_images: FLOAT32",
    _scale_shapes,
    _scale_settings,
    T=_TYPES,
)
def SCALEANDTRANSLATE(
    given: tuple[str, bool], outputs: list[Array], images: Array, size: Array, scale: Array, translation: Array
) -> None:
    ensure(bool((scale > 0).all() and np.isfinite(scale).all()), f"the scale {scale.tolist()} must be finite and above zero.")
    ensure(bool(np.isfinite(translation).all()), f"the translation {translation.tolist()} must be finite.")
    matrices = [
        spans(given[0], given[1], length, out, by, shift)
        for length, out, by, shift in zip(images.shape[1:3], outputs[0].shape[1:3], scale, translation)
    ]
    _separable(outputs[0], images, *matrices)
