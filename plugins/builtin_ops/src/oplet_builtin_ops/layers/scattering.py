"""Transposed convolution: every input pixel is multiplied with the whole filter, and the results are added where they overlap.

A strip of input rows gives a matrix of filter-sized stamps. Taps that lie less than a stride apart never meet, so all
stamps are added in ceil(filter / stride) passes along each axis instead of one pass per tap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from oplet_builtin_ops.layers.program import Call, convert
from oplet_builtin_ops.layers.windows import Strip, Windows

__all__ = ["Scatter"]

Array = NDArray[Any]

#: Values of a matrix of stamps: what stays in the second-level cache.
_STAMPS = 1 << 18
#: Output values finished at a time.
_FINISHED = 1 << 16


@dataclass(frozen=True)
class Scatter:
    """A transposed convolution.

    Attributes:
        windows: of the convolution whose transpose this is: over the output, one window for each input pixel.
        depth: channels of the input.
    """

    windows: Windows
    depth: int

    @property
    def filter_size(self) -> int:
        """Values in a stamp."""
        w = self.windows
        return w.height.filter * w.width.filter * w.channels

    @property
    def rows(self) -> int:
        """Input rows that are worked on together."""
        width = max(1, self.windows.width.out)
        return max(1, min(self.windows.height.out, _STAMPS // max(1, self.filter_size * width)))

    @property
    def stamps_shape(self) -> tuple[int, int]:
        """The matrix of stamps."""
        return self.rows * self.windows.width.out, self.filter_size

    @property
    def centred_shape(self) -> tuple[int, int]:
        """The rows of input that make these stamps."""
        return self.rows * self.windows.width.out, self.depth

    @property
    def finished(self) -> int:
        """The most output values that are finished together."""
        shape = self.windows.height.size, self.windows.width.size * self.windows.channels
        return min(shape[0], max(1, _FINISHED // max(1, shape[1]))) * shape[1]

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
    ) -> list[Call]:
        """The calls that compute everything.

        Args:
            source: the input.
            zero_point: of the input.
            matrix: the weights, (depth, filter height * filter width * channels), of the type to compute in.
            centred: scratch for rows of the input, converted and without zero point; None if they serve as they are.
            stamps: scratch of `stamps_shape`.
            sums: scratch of the shape of the padded output; the output itself if there is no padding.
            block: scratch for `finished` sums side by side; None to use the output.
            output: (output pixels, channels).
            finish: the calls that finish some output rows, given their sums.
        """
        program: list[Call] = []
        if not output.size:
            return program
        windows = self.windows
        program.append((sums.fill, (0,)))
        for image in range(windows.batch):
            for first in range(0, windows.height.out, self.rows):
                last = min(first + self.rows, windows.height.out)
                part = source[image, first:last].reshape(-1, self.depth)
                if centred is not None:
                    target = centred[: len(part)]
                    program.append((convert, (target, part)))
                    if zero_point:
                        program.append((np.subtract, (target, target.dtype.type(zero_point), target)))
                    part = target
                program.append((np.matmul, (part, matrix, stamps[: len(part)])))
                program += self._add_calls(stamps[: len(part)], sums[image, first * windows.height.stride :])
        return program + self._finish_calls(sums, block, output, finish)

    def _add_calls(self, stamps: Array, sums: Array) -> list[Call]:
        h, w, channels = self.windows.height, self.windows.width, self.windows.channels
        stamps = stamps.reshape(-1, w.out, h.filter, w.filter, channels)
        row, column, item = sums.strides
        program: list[Call] = []
        for y in range(0, h.filter, h.stride):
            for x in range(0, w.filter, w.stride):
                part = stamps[:, :, y : y + h.stride, x : x + w.stride].transpose(0, 2, 1, 3, 4)
                target = as_strided(
                    sums[y:, x:], part.shape, (row * h.stride, row, column * w.stride, column, item), writeable=True
                )
                program.append((np.add, (target, part, target)))
        return program

    def _finish_calls(
        self, sums: Array, block: Array | None, output: Array, finish: Callable[[Strip, Array], list[Call]]
    ) -> list[Call]:
        windows = self.windows
        channels = windows.channels
        height, width = windows.height.size, windows.width.size
        inner = windows.interior(sums)
        rows = max(1, self.finished // (width * channels))
        program: list[Call] = []
        for image in range(windows.batch):
            for first in range(0, height, rows):
                last = min(first + rows, height)
                start, stop = (image * height + first) * width, (image * height + last) * width
                target = output[start:stop] if block is None else block[: (stop - start) * channels].reshape(-1, channels)
                part = inner[image, first:last]
                if not np.shares_memory(target, part):
                    program.append((np.copyto, (target.reshape(part.shape), part)))
                where = slice(image, image + 1), slice(first, last), slice(0, width)
                program += finish(Strip(where, start, stop), target)
        return program
