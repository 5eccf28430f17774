"""Sampling kernels of ScaleAndTranslate, and the pixel weights derived from them.

Numerics: tensorflow/core/kernels/image/{sampling_kernels.h,scale_and_translate_op.cc}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from oplet.kernels.arrays import Array
from oplet_flex_ops.kernel import reserve

__all__ = ["KERNELS", "rounded", "spans"]

_F = np.float32


def rounded(place: Array) -> Any:
    """Round to the nearest integer, ties away from zero."""
    whole = np.trunc(place)
    return whole + np.copysign(np.abs(place - whole) >= 0.5, place).astype(place.dtype)


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def weigh(x: Array) -> Any:
        with np.errstate(all="ignore"):
            wave = _F(radius) * np.sin(_F(np.pi) * x) * np.sin(_F(np.pi) * x / _F(radius)) / (_F(np.pi * np.pi) * x * x)
        return np.where(x > radius, _F(0), np.where(x <= _F(1e-3), _F(1), wave))

    return weigh


def _gaussian(x: Array) -> Any:
    return np.where(x >= _F(1.5), _F(0), np.exp(-x * x / _F(0.5)))


def _box(x: Array) -> Any:
    return np.where(x < _F(0.5), _F(1), np.where(x == _F(0.5), _F(0.5), _F(0)))


def _triangle(x: Array) -> Any:
    return np.maximum(_F(1) - x, _F(0))


def _keys(x: Array) -> Any:
    far = ((_F(-0.5) * x + _F(2.5)) * x - _F(4)) * x + _F(2)
    near = ((_F(1.5) * x - _F(2.5)) * x) * x + _F(1)
    return np.where(x >= 2, _F(0), np.where(x >= 1, far, near))


def _mitchell(x: Array) -> Any:
    far = ((_F(-7 / 18) * x + _F(2)) * x - _F(10 / 3)) * x + _F(16 / 9)
    near = ((_F(7 / 6) * x - _F(2)) * x) * x + _F(8 / 9)
    return np.where(x >= 2, _F(0), np.where(x >= 1, far, near))


#: The kernels by name: their radius, and their weight at a distance of 0 or more.
KERNELS: Final[dict[str, tuple[float, Callable[[Array], Array]]]] = {
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian),
    "box": (1.0, _box),
    "triangle": (1.0, _triangle),
    "keyscubic": (2.0, _keys),
    "mitchellcubic": (2.0, _mitchell),
}


def spans(kernel: str, antialias: bool, length: int, out: int, scale: Any, translation: Any) -> Array:
    """Return the weight of each input pixel of an axis for each output pixel, float32 of shape (out, length).

    Args:
        kernel: its name in `KERNELS`.
        antialias: whether the kernel is widened where the image becomes smaller.
        scale, translation: float32; an input position x lands at scale * x + translation.
    """
    reserve((out, length), 24)
    radius, weigh = KERNELS[kernel]
    with np.errstate(all="ignore"):
        inverse = _F(1) / scale
        stretch = max(inverse, _F(1)) if antialias else _F(1)
        centre = (np.arange(out, dtype=_F) + _F(0.5)) * inverse + -inverse * translation
        reach = _F(radius) * stretch
        first = np.clip(np.ceil(centre - reach - _F(0.5)), 0, length - 1)[:, None]
        last = np.clip(np.floor(centre + reach - _F(0.5)), 0, length - 1)[:, None]
        pixel = np.arange(length, dtype=_F)
        weights = weigh(np.abs((pixel + _F(0.5) - centre[:, None]) / stretch)).astype(_F)
    inside = ((centre >= 0) & (centre <= length))[:, None]
    weights[~(inside & (pixel >= first) & (pixel <= last))] = 0
    total = weights.sum(1, keepdims=True)
    weights /= np.where(np.abs(total) >= 1000 * np.finfo(_F).tiny, total, _F(1))
    return weights
