"""Convolution with any number of spatial axes as matrix products (im2col), a block of outputs at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from oplet.kernels.arrays import Array, Shape
from oplet.kernels.windows import Axis, window_axis
from oplet.schema.options import Conv3DOptions
from oplet_builtin_ops.layers.program import Call
from oplet_builtin_ops.layers.transposed_windows import transposed_axis

__all__ = ["Convolution", "window_axes_3d"]

#: The most gathered values at a time, which about stay in the cache until they are multiplied.
_GATHERED = 196608
#: The most groups that get calls of their own; more are gathered and multiplied, several at a time.
_FEW_GROUPS = 64


@dataclass(frozen=True)
class Convolution:
    """Plan of an N-dimensional grouped convolution over maps of shape (batch, axes..., channels).

    Attributes:
        batch: the number of maps.
        axes: the windows along each axis; the maps include their padding.
        channels: the channels of the map.
        filters: the number of output channels.
        groups: the number of groups of channels and filters, which are convolved separately.
    """

    batch: int
    axes: Sequence[Axis]
    channels: int
    filters: int
    groups: int = 1

    @property
    def out(self) -> Shape:
        """The number of windows along each axis: the spatial output shape."""
        return tuple(axis.out for axis in self.axes)

    @property
    def depth(self) -> int:
        """The number of products that are summed for an output value."""
        return prod(axis.filter for axis in self.axes) * (self.channels // self.groups)

    @property
    def columns_size(self) -> int:
        """The number of scratch values that `calls` needs for gathered patches."""
        size = self._images * self._strip * prod(self.out[1:]) * self.depth
        return size if self.groups <= _FEW_GROUPS else size * self._together(size)

    def _together(self, size: int) -> int:
        """Return how many groups to multiply at a time when one group's patches have `size` values."""
        return 1 if self.groups <= _FEW_GROUPS else max(1, min(self.groups, _GATHERED // max(1, size)))

    @property
    def _images(self) -> int:
        """Number of maps of the batch that are multiplied at a time."""
        if self.axes and self._strip < self.out[0]:
            return 1
        return max(1, min(self.batch, _GATHERED // max(1, prod(self.out) * self.depth)))

    @property
    def _strip(self) -> int:
        """Number of positions along the first spatial axis that are multiplied at a time."""
        step = prod(self.out[1:]) * self.depth
        return max(1, min(self.out[0] if self.axes else 1, _GATHERED // max(1, step)))

    def calls(
        self, maps: Array, weights: Array, columns: Array, target: Array, finish: Callable[[Array], list[Call]]
    ) -> Iterator[Call]:
        """Yield the numpy calls that compute the convolution.

        Args:
            maps: the inputs, with their padding.
            weights: (taps along each axis..., channels of a group, filters).
            columns: `columns_size` values of scratch of the type of the maps.
            target: receives the result, (batch, out..., filters).
            finish: returns the calls that turn a block of products, (windows, filters), into results.
        """
        if not target.size:
            return
        if not self.depth:
            yield target.fill, (0,)
            yield from finish(target.reshape(-1, self.filters))
            return
        matrix = weights.reshape(self.depth, self.filters)
        patches = self._patches(maps)
        inner, width = self.channels // self.groups, self.filters // self.groups
        # Adjacent windows of one value are rows already.
        in_place = self.groups == 1 and all(axis.filter == axis.stride == 1 for axis in self.axes)
        steps = self.out[0] if self.axes else 1
        for image in range(0, self.batch, self._images):
            images = slice(image, image + self._images)
            for start in range(0, steps, self._strip):
                part = (images, slice(start, start + self._strip)) if self.axes else (images,)
                seen, block = patches[part], target[part].reshape(-1, self.filters)
                if in_place:
                    yield np.matmul, (seen.reshape(len(block), self.depth), matrix, block)
                elif self.groups <= _FEW_GROUPS:
                    rows: Array = columns[: len(block) * self.depth].reshape(len(block), self.depth)
                    for group in range(self.groups):
                        taken = seen[..., group * inner : (group + 1) * inner]
                        picked = slice(group * width, (group + 1) * width)
                        yield np.copyto, (rows.reshape(taken.shape), taken)
                        yield np.matmul, (rows, matrix[:, picked], block[:, picked])
                else:
                    yield from self._grouped_calls(seen, matrix, columns, block)
                yield from finish(block)

    def _grouped_calls(self, seen: Array, matrix: Array, columns: Array, block: Array) -> Iterator[Call]:
        """Yield the numpy calls that gather and multiply the groups of one block, several groups at a time."""
        windows, count = len(block), self.groups
        by_group = np.moveaxis(seen.reshape(*seen.shape[:-1], count, -1), -2, 0)
        matrices = matrix.reshape(self.depth, count, -1).swapaxes(0, 1)
        results = block.reshape(windows, count, -1).swapaxes(0, 1)
        step = self._together(windows * self.depth)
        for first in range(0, count, step):
            taken = by_group[first : first + step]
            rows = columns[: len(taken) * windows * self.depth].reshape(len(taken), windows, self.depth)
            yield np.copyto, (rows.reshape(taken.shape), taken)
            yield np.matmul, (rows, matrices[first : first + step], results[first : first + step])

    def _patches(self, maps: Array) -> Array:
        """Return the patches of all windows as a strided view of shape (batch, out..., taps..., channels)."""
        first, *middle, last = maps.strides
        return as_strided(
            maps,
            (self.batch, *self.out, *(axis.filter for axis in self.axes), self.channels),
            (
                first,
                *(stride * axis.stride for stride, axis in zip(middle, self.axes)),
                *(stride * axis.dilation for stride, axis in zip(middle, self.axes)),
                last,
            ),
            writeable=False,
        )


def window_axes_3d(
    options: Conv3DOptions, sizes: Sequence[int], taps: Sequence[int], inputs: Sequence[int] | None = None
) -> list[Axis]:
    """Return the windows of a 3D convolution along depth, height and width.

    Args:
        options: the options of CONV_3D or CONV_3D_TRANSPOSE.
        sizes: the spatial sizes of the input, or of the output of a transposed convolution.
        taps: the spatial sizes of the filter.
        inputs: the spatial sizes of the input of a transposed convolution; None for an ordinary one.
    """
    strides = options.stride_d, options.stride_h, options.stride_w
    dilations = options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor
    given = [*zip(("depth", "height", "width"), sizes, taps, strides, dilations)]
    if inputs is None:
        return [window_axis(name, options.padding, *numbers) for name, *numbers in given]
    return [
        transposed_axis(name, options.padding, size, tap, stride, count, dilation)
        for (name, size, tap, stride, dilation), count in zip(given, inputs)
    ]
