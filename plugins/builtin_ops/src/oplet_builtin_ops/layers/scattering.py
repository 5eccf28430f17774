"""TRANSPOSE_CONV: every input pixel is multiplied with the whole filter, and overlapping results are added up.

A strip of input rows gives a matrix of *stamps*, each as large as the filter. Taps less than a stride apart never overlap, so that
all stamps are added in ceil(filter / stride) passes along each axis, in place of one pass per tap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.layers.program import Call, convert
from oplet_builtin_ops.layers.windows import Strip, Windows, strided

__all__ = ["Scatter"]


#: The values of a matrix of stamps, which stay in the second-level cache.
_STAMPS = 1 << 18
#: The output values that are finished at a time.
_FINISHED = 1 << 16


@dataclass(frozen=True)
class Scatter:
    """Plan of a transposed convolution: a matrix product, then a scatter-add (col2im) into the output.

    Attributes:
        windows: the windows of the convolution that is transposed: over the output, one per input pixel.
        depth: the channels of the input.
        by_image: whether outputs of different images are finished (bias, activation) separately.
    """

    windows: Windows
    depth: int
    by_image: bool = False

    @property
    def filter_size(self) -> int:
        """The number of output values that one input pixel contributes to (filter height * width * channels)."""
        w = self.windows
        return w.height.filter * w.width.filter * w.channels

    @property
    def rows(self) -> int:
        """The number of input rows that are multiplied at a time."""
        width = max(1, self.windows.width.out)
        return max(1, min(self.windows.height.out, _STAMPS // max(1, self.filter_size * width)))

    @property
    def images(self) -> int:
        """The number of images that are multiplied at a time, if whole images fit."""
        w = self.windows
        if self.rows < w.height.out:
            return 1
        return max(1, min(w.batch, _STAMPS // max(1, self.filter_size * w.height.out * w.width.out)))

    @property
    def stamps_shape(self) -> tuple[int, int]:
        """The shape of the matrix of products, (input pixels, filter_size), before they are scattered."""
        return self.images * self.rows * self.windows.width.out, self.filter_size

    @property
    def centred_shape(self) -> tuple[int, int]:
        """The shape of the block of input pixels, minus zero point, that is multiplied at a time."""
        return self.stamps_shape[0], self.depth

    @property
    def finished(self) -> int:
        """The largest number of output values that are finished (bias, activation, requantization) at a time."""
        w = self.windows
        row = w.width.size * w.channels
        rows = min(w.height.size, max(1, _FINISHED // max(1, row)))
        return rows * row * self._finished_images

    @property
    def _finished_images(self) -> int:
        """Number of whole images that are finished at a time, if images are small."""
        w = self.windows
        return 1 if self.by_image else max(1, min(w.batch, _FINISHED // max(1, w.height.size * w.width.size * w.channels)))

    def calls(
        self,
        source: Array,
        zero_point: int,
        matrix: Array,
        centred: Array | None,
        stamps: Array,
        sums: Array,
        block: Array | None,
        output: Array,
        finish: Callable[[Strip, Array], list[Call]],
    ) -> Iterator[Call]:
        """Yield the numpy calls that compute the transposed convolution.

        Args:
            source: the input.
            zero_point: the input's zero point.
            matrix: the weights, (depth, filter height * filter width * channels), of the type to compute in.
            centred: scratch for rows of the input, converted and without zero point; None if the input serves as it is.
            stamps: scratch of `stamps_shape`, for the products of some input pixels with the whole filter.
            sums: scratch of the shape of the padded output; the output itself if there is no padding.
            block: scratch for the sums that are finished together, `finished` values; None to use the output.
            output: (output pixels, channels).
            finish: returns the calls that turn sums into outputs: bias, activation, requantization.
        """
        if not output.size:
            return
        windows = self.windows
        yield sums.fill, (0,)
        for image in range(0, windows.batch if source.size and matrix.size else 0, self.images):
            images = slice(image, image + self.images)
            for first in range(0, windows.height.out, self.rows):
                last = min(first + self.rows, windows.height.out)
                part = source[images, first:last].reshape(-1, self.depth)
                if centred is not None:
                    target = centred[: len(part)]
                    yield convert, (target, part)
                    if zero_point:
                        yield np.subtract, (target, target.dtype.type(zero_point), target)
                    part = target
                yield np.matmul, (part, matrix, stamps[: len(part)])
                yield from self._add_calls(stamps[: len(part)], sums, image, first)
        yield from self._finish_calls(sums, block, output, finish)

    def _add_calls(self, stamps: Array, sums: Array, image: int, first: int) -> Iterator[Call]:
        """Yield numpy calls that scatter-add the products of some images, or of some rows of one, into `sums`."""
        h, w, channels = self.windows.height, self.windows.width, self.windows.channels
        whole, row, column, item = sums.strides
        images = min(self.images, self.windows.batch - image)
        stamps = stamps.reshape(images, -1, w.out, h.filter, w.filter, channels).transpose(0, 1, 3, 2, 4, 5)
        strides = whole, row * h.stride, row, column * w.stride, column, item
        origin = image * whole + first * h.stride * row
        for y in range(0, h.filter, h.stride):
            for x in range(0, w.filter, w.stride):
                part = stamps[:, :, y : y + h.stride, :, x : x + w.stride]
                target = strided(sums, part.shape, strides, origin + y * row + x * column)
                yield np.add, (target, part, target)

    def _finish_calls(
        self, sums: Array, block: Array | None, output: Array, finish: Callable[[Strip, Array], list[Call]]
    ) -> Iterator[Call]:
        windows = self.windows
        channels = windows.channels
        height, width = windows.height.size, windows.width.size
        inner = windows.interior(sums)
        step = self._finished_images
        rows = max(1, self.finished // (step * width * channels))
        for image in range(0, windows.batch, step):
            images = slice(image, min(image + step, windows.batch))
            for first in range(0, height, rows):
                last = min(first + rows, height)
                start, stop = (image * height + first) * width, ((images.stop - 1) * height + last) * width
                target = output[start:stop] if block is None else block[: (stop - start) * channels].reshape(-1, channels)
                part = inner[images, first:last]
                if not np.may_share_memory(target, part):
                    yield np.copyto, (target.reshape(part.shape), part)
                yield from finish(Strip((images, slice(first, last), slice(0, width)), start, stop), target)
