"""Shared parts of ops with windows: attributes, windows along each axis, data format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oplet import Tensor, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.windows import WindowAxis, window_axis

__all__ = ["Geometry", "image_geometry", "pool_geometry", "volume_geometry"]


class Geometry(NamedTuple):
    """Parsed window attributes of an op: window, strides, dilations, padding, data format.

    Attributes:
        window: the sizes of a pool's window; empty for convolutions, whose filters have them.
        strides, dilations: one number per spatial axis.
        same: whether the padding is SAME.
        channels_last: whether the last axis has the channels; else axis 1 has them.
    """

    window: list[int]
    strides: list[int]
    dilations: list[int]
    same: bool
    channels_last: bool

    def last(self, array: Array) -> Array:
        """Return a view of the array with the channels as the last axis."""
        return array if self.channels_last else array.transpose(0, *range(2, array.ndim), 1)

    def space(self, shape: Shape) -> Shape:
        """Return the spatial sizes of a tensor's shape."""
        return shape[1:-1] if self.channels_last else shape[2:]

    def depth(self, shape: Shape) -> int:
        """Return the number of channels of a tensor's shape."""
        return shape[-1] if self.channels_last else shape[1]

    def shape(self, batch: int, space: Sequence[int], depth: int) -> Shape:
        """Return the tensor shape of these sizes in the op's data format."""
        return (batch, *space, depth) if self.channels_last else (batch, depth, *space)

    def axes(self, space: Shape, window: Sequence[int]) -> list[WindowAxis]:
        """Return the windows along each spatial axis; `space` and `window` are the sizes of the input and of a window along each.

        Raises:
            EnsureError: a window is larger than its axis and there is no padding.
        """
        sides = zip(space, window, self.strides, self.dilations)
        return [window_axis(size, length, stride, rate, self.same) for size, length, stride, rate in sides]

    def ensure_rank(self, tensor: Tensor) -> None:
        """Raise an error unless the tensor has as many dimensions as the attributes describe."""
        rank = len(self.strides) + 2
        ensure(tensor.ndim == rank, lambda: f"{tensor} must have {rank} dimensions.")


def _inner(attributes: Attributes, name: str, rank: int, last: bool, default: Sequence[int] | None = None) -> list[int]:
    values = attributes.integers(name, count=rank, default=default)
    outer = (values[0], values[-1 if last else 1])
    ensure(
        outer == (1, 1) and min(values) > 0 and max(values) < 1 << 31,
        f"the attribute '{name}' is {values}; it must be above zero, and 1 for batch and channels.",
    )
    return values[1:-1] if last else values[2:]


def _geometry(attributes: Attributes, rank: int, window: str, dilations: str, formats: Sequence[str]) -> Geometry:
    last = attributes.text("data_format", *formats, default=formats[0]).endswith("C")
    return Geometry(
        _inner(attributes, window, rank, last) if window else [],
        _inner(attributes, "strides", rank, last),
        _inner(attributes, dilations, rank, last, [1] * rank) if dilations else [1] * (rank - 2),
        attributes.text("padding", "SAME", "VALID") == "SAME",
        last,
    )


def volume_geometry(attributes: Attributes) -> Geometry:
    """Read the window attributes of a 3-D convolution."""
    return _geometry(attributes, 5, "", "dilations", ("NDHWC", "NCDHW"))


def pool_geometry(attributes: Attributes) -> Geometry:
    """Read the window attributes of a 3-D pool."""
    return _geometry(attributes, 5, "ksize", "", ("NDHWC", "NCDHW"))


def image_geometry(attributes: Attributes, window: str = "", dilations: str = "") -> Geometry:
    """Read the window attributes of an op on NHWC images; `window` and `dilations` are the attributes' names, "" for none."""
    return _geometry(attributes, 4, window, dilations, ("NHWC",))
