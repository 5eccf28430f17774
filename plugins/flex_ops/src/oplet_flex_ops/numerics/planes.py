"""2D windows over NHWC maps: geometry from attributes, convolutions, pools, and their gradients.

A picture at a time, every window is laid out as a row, so that a convolution is one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from oplet import Node, Tensor, charge, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.windows import Axis, window_axis
from oplet.schema.enums import Padding
from oplet_flex_ops.attributes import Attributes

__all__ = [
    "Plane",
    "convolution",
    "depthwise",
    "ensure_planes",
    "filter_gradient",
    "input_gradient",
    "plane_of",
    "plane_of_filters",
]

_PADDINGS = {"SAME": Padding.SAME, "VALID": Padding.VALID, "EXPLICIT": Padding.VALID}


class Plane(NamedTuple):
    """The 2D windows over one map: sizes, filter, strides, dilations, padding.

    Attributes:
        height: the windows along the height.
        width: the windows along the width.
    """

    height: Axis
    width: Axis

    @property
    def out(self) -> Shape:
        """Return the number of windows along height and width: the output size."""
        return self.height.out, self.width.out

    @property
    def padded(self) -> Shape:
        """Return the height and width of the padded map."""
        return self.height.padded, self.width.padded

    @property
    def inside(self) -> tuple[slice, slice]:
        """Return the slices of the padded map that hold the map itself."""
        rows, columns = self.height, self.width
        return slice(rows.before, rows.before + rows.size), slice(columns.before, columns.before + columns.size)

    def taps(self) -> Iterator[tuple[int, int, tuple[slice, slice]]]:
        """Yield each tap (element of the filter): row, column, and the padded map's slices that all windows read there."""
        for row in range(self.height.filter):
            for column in range(self.width.filter):
                yield row, column, (_every(self.height, row), _every(self.width, column))

    def valid(self) -> Iterator[tuple[tuple[slice, slice], Array]]:
        """Yield for each filter tap the (row, column) slices of the padded map that it reads, and a mask of the output windows, True
        where the tap reads the map and not padding.
        """
        for row, column, part in self.taps():
            within = [
                (places >= 0) & (places < axis.size)
                for axis, tap in ((self.height, row), (self.width, column))
                for places in [np.arange(axis.out) * axis.stride + tap * axis.dilation - axis.before]
            ]
            yield part, (within[0][:, None] & within[1])[..., None]


def _every(axis: Axis, tap: int) -> slice:
    start = tap * axis.dilation
    return slice(start, start + (axis.out - 1) * axis.stride + 1 if axis.out else start, axis.stride)


def ensure_planes(*tensors: Tensor) -> None:
    """Raise an error unless each tensor has four non-empty dimensions."""
    for tensor in tensors:
        ensure(tensor.ndim == 4, f"{tensor} must have four dimensions.")
        ensure(tensor.size > 0, f"{tensor} holds no values.")


def plane_of(
    attributes: Attributes, source: Shape, filter: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Plane:
    """Return the windows over a map of shape `source`, by the attributes `padding`, `explicit_paddings` and `data_format`.

    Args:
        filter: the height and width of a window.
        strides: four numbers, [1, height, width, 1].
        dilations: four numbers in the same order.
    """
    attributes.text("data_format", "NHWC", default="NHWC")
    for name, values in (("strides", strides), ("dilations", dilations)):
        fits = len(values) == 4 and values[0] == values[3] == 1 and min(values) > 0
        ensure(fits, f"the {name} of {attributes.op} are {list(values)}; they must be [1, height, width, 1] and above zero.")
    padding = attributes.text("padding", "SAME", "VALID", "EXPLICIT")
    axes = []
    for number, name in ((1, "height"), (2, "width")):
        size, taps, stride, dilation = source[number], filter[number - 1], strides[number], dilations[number]
        before = after = 0
        if padding == "EXPLICIT":
            around = attributes.integers("explicit_paddings", count=8)
            fits = min(around) >= 0 and not any(around[:2] + around[6:])
            ensure(fits, f"explicit_paddings {around} pad other than height and width.")
            before, after = around[2 * number : 2 * number + 2]
        axis = window_axis(name, _PADDINGS[padding], size + before + after, taps, stride, dilation)
        ensure(axis.out > 0, f"windows of {axis.span} along the {name} do not fit into {size + before + after} values.")
        axes.append(axis._replace(size=size, before=before) if padding == "EXPLICIT" else axis)
    return Plane(*axes)


def plane_of_filters(attributes: Attributes, source: Shape, filters: Shape) -> Plane:
    """Return the windows of a convolution with such filters, by its attributes `strides` and `dilations` too."""
    dilations = attributes.integers("dilations", default=[1, 1, 1, 1])
    return plane_of(attributes, source, filters[:2], attributes.integers("strides"), dilations)


class _Rows:
    """im2col buffers for one image at a time: windows as rows of a matrix.

    Attributes:
        padded: one image with its padding, of shape (height, width, channels).
        windows: the image's windows, of shape (output height, output width, filter height, filter width, channels).
    """

    def __init__(self, plane: Plane, channels: int, dtype: np.dtype[np.generic]) -> None:
        self._plane = plane
        shape = (*plane.out, plane.height.filter, plane.width.filter, channels)
        charge(dtype.itemsize * (int(np.prod(shape, dtype=object)) + int(np.prod(plane.padded, dtype=object)) * channels))
        self.padded: Array = np.zeros((*plane.padded, channels), dtype)
        self.windows: Array = np.empty(shape, dtype)

    def read(self, picture: Array) -> Array:
        """Gather an image's windows (im2col)."""
        self.padded[self._plane.inside] = picture
        for row, column, part in self._plane.taps():
            self.windows[:, :, row, column] = self.padded[part]
        return self.windows

    def add_back(self, picture: Array) -> None:
        """Scatter-add the windows back into `picture` (col2im)."""
        self.padded.fill(0)
        for row, column, part in self._plane.taps():
            self.padded[part] += self.windows[:, :, row, column]
        picture[...] = self.padded[self._plane.inside]


def _grouped(windows: Array, groups: int) -> list[Array]:
    """Return each channel group's windows as a matrix with one row per window."""
    size = windows.shape[-1] // groups
    count = windows.shape[0] * windows.shape[1]
    return [windows[..., group * size : (group + 1) * size].reshape(count, -1) for group in range(groups)]


def convolution(plane: Plane, source: Array, filters: Array, output: Array) -> Thunk:
    """Return a function: output = convolution of `source` with filters (height, width, channels per group, output channels)."""
    groups = source.shape[3] // filters.shape[2]
    rows, results = _Rows(plane, source.shape[3], source.dtype), filters.shape[3] // groups
    matrix = filters.reshape(-1, filters.shape[3])

    def run() -> None:
        for picture, made in zip(source, output):
            checkpoint()
            for group, windows in enumerate(_grouped(rows.read(picture), groups)):
                part = slice(group * results, (group + 1) * results)
                made[..., part] = (windows @ matrix[:, part]).reshape(*plane.out, results)

    return run


def input_gradient(plane: Plane, filters: Array, gradient: Array, output: Array) -> Thunk:
    """Return a function that computes the gradient of a convolution's input from that of its output."""
    groups = output.shape[3] // filters.shape[2]
    rows, results = _Rows(plane, output.shape[3], output.dtype), filters.shape[3] // groups
    matrix, size = filters.reshape(-1, filters.shape[3]), filters.shape[2]
    whole = rows.windows.reshape(plane.height.out * plane.width.out, -1)
    charge(0 if groups == 1 else whole.nbytes // groups)  # a product

    def run() -> None:
        for given, picture in zip(gradient, output):
            checkpoint()
            flat = given.reshape(-1, given.shape[-1])
            if groups == 1:
                np.matmul(flat, matrix.T, out=whole)
            else:
                for group in range(groups):
                    part = slice(group * results, (group + 1) * results)
                    windows = flat[:, part] @ matrix[:, part].T
                    rows.windows[..., group * size : (group + 1) * size] = windows.reshape(*rows.windows.shape[:-1], size)
            rows.add_back(picture)

    return run


def filter_gradient(plane: Plane, source: Array, gradient: Array, output: Array) -> Thunk:
    """Return a function that computes the gradient of a convolution's filters from that of its output."""
    groups = source.shape[3] // output.shape[2]
    rows, results = _Rows(plane, source.shape[3], source.dtype), output.shape[3] // groups
    matrix = output.reshape(-1, output.shape[3])

    def run() -> None:
        output.fill(0)
        for picture, given in zip(source, gradient):
            checkpoint()
            flat = given.reshape(-1, given.shape[-1])
            for group, windows in enumerate(_grouped(rows.read(picture), groups)):
                part = slice(group * results, (group + 1) * results)
                matrix[:, part] += windows.T @ flat[:, part]

    return run


def depthwise(plane: Plane, source: Array, filters: Array, output: Array, wanted: str) -> Thunk:
    """Return a function that computes a depthwise convolution, or the gradient of its input or filters.

    Args:
        source: the input, of shape (batch, height, width, channels).
        filters: of shape (height, width, channels, multiplier).
        output: of shape (batch, height, width, channels * multiplier).
        wanted: the array to compute from the two others: "output", or "source" or "filters" for their gradients.
    """
    channels, multiplier = filters.shape[2:]
    charge(2 * source.itemsize * int(np.prod(plane.padded, dtype=object)) * channels)
    padded: Array = np.zeros((*plane.padded, channels), source.dtype)

    def run() -> None:
        if wanted == "filters":
            filters.fill(0)
        for picture, result in zip(source, output.reshape(*output.shape[:3], channels, multiplier)):
            checkpoint()
            padded.fill(0)
            if wanted != "source":
                padded[plane.inside] = picture
            if wanted == "output":
                result.fill(0)
            for row, column, part in plane.taps():
                weights = filters[row, column]
                if wanted == "output":
                    result += padded[part][..., None] * weights
                elif wanted == "source":
                    padded[part] += (result * weights).sum(-1)
                else:
                    weights += (padded[part][..., None] * result).sum((0, 1))
            if wanted == "source":
                picture[...] = padded[plane.inside]

    return run


def ensure_filters(node: Node, source: Shape, filters: Shape, *, separate: bool) -> None:
    """Raise an error for filters that do not match the input's channels; `separate` if they are a depthwise convolution's."""
    ensure(len(filters) == 4 and min(filters) > 0, f"the filters' shape {list(filters)} must be of four sizes above zero.")
    if separate:
        ensure(filters[2] == source[3], f"the filters are of {filters[2]} channels, the input has {source[3]}.")
        return
    groups, rest = divmod(source[3], filters[2])
    ensure(not rest, f"the {source[3]} channels of the input are no multiple of the filters' {filters[2]}.")
    ensure(filters[3] % groups == 0, f"{filters[3]} filters cannot be shared among {groups} groups of channels.")
