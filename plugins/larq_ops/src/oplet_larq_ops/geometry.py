"""Windows of a convolution as numbers of pixels, which are taken from a map in any order and amount.

No padded copy of the map is made: taps outside of it are told apart by a mask, however far away a model puts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from oplet.kernels.arrays import Array
from oplet.kernels.windows import Axis

__all__ = ["Chunk", "Chunks", "Taps", "chunks_of", "each_chunk", "taps_of"]


class Taps(NamedTuple):
    """The pixels that some windows read, as indices in the flattened image, of shape (windows, taps of a window)."""

    pixels: Array  #: the number of the pixel that the tap meets; any pixel where it lies outside
    outside: Array | None  #: whether the tap lies outside of the map; None if none does


class Chunk(NamedTuple):
    """Windows that are computed together: some windows of one image, or all windows of several images."""

    maps: slice
    windows: slice
    size: int  #: its windows, over all its maps


class Chunks(NamedTuple):
    """How windows are divided into chunks."""

    maps: int  #: of a chunk
    windows: int  #: of a map

    @property
    def most(self) -> int:
        """The number of windows of the largest chunk."""
        return self.maps * self.windows


def taps_of(height: Axis, width: Axis, windows: slice) -> Taps:
    """Return the pixels that these windows read; windows are numbered row by row."""
    down, across = np.divmod(np.arange(windows.start, windows.stop), width.out)
    (rows, above), (columns, beside) = _along(height, down), _along(width, across)
    pixels = (rows[:, :, None] * width.size + columns[:, None, :]).reshape(len(down), -1)
    if not above.any() and not beside.any():
        return Taps(pixels, None)
    return Taps(pixels, (above[:, :, None] | beside[:, None, :]).reshape(pixels.shape))


def _along(axis: Axis, windows: Array) -> tuple[Array, Array]:
    """Return where each tap of each window lies along an axis, within the map, and whether it had to be moved there."""
    at = (windows * axis.stride - axis.before)[:, None] + np.arange(axis.filter) * axis.dilation
    within = np.minimum(np.maximum(at, 0), axis.size - 1)
    return within, within != at


def chunks_of(maps: int, windows: int, most: int) -> Chunks:
    """Divide the windows of all images into chunks of at most `most` windows, but at least one.

    Args:
        maps: the number of images.
        windows: the number of windows of an image.
        most: the largest number of windows of a chunk.
    """
    if windows <= most:
        return Chunks(max(1, min(maps, most // max(1, windows))), windows)
    return Chunks(1, max(1, most))


def each_chunk(chunks: Chunks, maps: int, windows: int) -> Iterator[Chunk]:
    """Yield all chunks of `maps` images with `windows` windows each."""
    for first in range(0, maps, chunks.maps):
        last = min(maps, first + chunks.maps)
        for start in range(0, windows, chunks.windows):
            stop = min(windows, start + chunks.windows)
            yield Chunk(slice(first, last), slice(start, stop), (last - first) * (stop - start))
