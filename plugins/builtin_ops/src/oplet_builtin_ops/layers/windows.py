"""2D sliding windows over a map: output sizes, padding, strips, and strided views of patches (im2col).

Numerics: tflite/kernels/padding.h
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.kernels.arrays import Array
from oplet.kernels.windows import Axis, Windows2D
from oplet.records import Row

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.program import Call

__all__ = [
    "Strip", "Windows", "border_calls", "by_lane", "longest_strip", "shared_strips", "strided",
]  # fmt: skip


#: The most strips of a division into strips that is cached.
_KEPT = 64


class Rows(Row):
    """A range of consecutive rows of a padded map.

    Attributes:
        padded: the rows of the padded map.
        source: the corresponding rows of the map without padding.
        top: the number of padding rows before them.
    """

    padded: slice
    source: slice
    top: int


class Strip(Row):
    """A block of consecutive windows that are computed together.

    Attributes:
        where: the images, rows and columns of windows, as slices.
        start: the number of the first window.
        stop: the number after the last window.
        lane: the thread that computes it.
    """

    where: tuple[slice, slice, slice]
    start: int
    stop: int
    lane: int = 0


class Windows(Windows2D):
    """2D windows divided into strips that are computed together, with views of their patches."""

    __slots__ = ()

    @property
    def are_rows(self) -> bool:
        """Whether each window is a contiguous piece of the padded map in order, so that im2col needs no copy."""
        return _are_rows(self.height, self.width)

    def interior(self, padded: Array) -> Array:
        """Return the view of a padded map without its padding."""
        h, w = self.height, self.width
        return padded[:, h.before : h.before + h.size, w.before : w.before + w.size]

    def padded_apart(self, strips: Sequence[Strip]) -> list[tuple[int, Sequence[Strip]]]:
        """Group the strips by the thread that writes the padding they read; return (thread, strips), or -1 for one group of all.

        The group -1 is written before threads start. Padded rows that two threads read are written by both, with the same values.
        """
        if not strips or strips[-1].lane == 0 or self.batch > 1:
            return [(-1, strips)]
        return by_lane(strips)

    def rows_read(self, strips: Sequence[Strip]) -> Rows:
        """Return the rows of the padded map that some strips read: all rows unless the batch is 1."""
        if self.batch > 1:
            return _rows_read(self.height, None, 0)
        if len(strips) == 1:
            rows = strips[0].where[1]
            return _rows_read(self.height, rows.start, rows.stop)
        begin, end = strips[0].where[1].start, strips[-1].where[1].stop  # strips of one map are in the order of its rows
        return _rows_read(self.height, begin, end)

    def padding_calls(self, source: Array, padded: Array, value: Any, strips: Sequence[Strip]) -> list[Call]:
        """Return numpy calls that copy the map into `padded` and fill its border, for the rows that the strips read."""
        w, rows = self.width, self.rows_read(strips)
        part, inside = padded[:, rows.padded], source[:, rows.source]
        height = inside.shape[1]
        program = border_calls(part, value, rows.top, height, w.before, w.size)
        if height:
            program.append((np.copyto, (part[:, rows.top : rows.top + height, w.before : w.before + w.size], inside)))
        return program

    def patches(self, padded: Array) -> Array:
        """Return all windows' patches as a strided view: (batch, height.out, width.out, filter height, filter width, channels)."""
        h, w = self.height, self.width
        image, row, column, channel = padded.strides
        return strided(
            padded,
            (self.batch, h.out, w.out, h.filter, w.filter, self.channels),
            (image, row * h.stride, column * w.stride, row * h.dilation, column * w.dilation, channel),
        )

    def strips(self, size: int, by_image: bool = False, lanes: int = 1) -> Sequence[Strip]:
        """Divide the windows into strips of about `size` windows, of whole rows or images where these are small.

        Args:
            size: the number of windows of a strip.
            by_image: whether no strip may have windows of two images.
            lanes: the number of threads to assign strips to: a strip goes to the thread that has its middle window if all windows
                are distributed evenly.
        """
        from oplet_builtin_ops.layers.rows import Slices, even_slices  # here, as compiled kernels plan no strips

        if not self.count:
            return []
        rows, columns = self.height.out, self.width.out
        if rows * columns <= size:
            images = 1 if by_image else max(1, size // (rows * columns))
            return _Strips(self, even_slices(self.batch, images), Slices(rows, rows), Slices(columns, columns), lanes)
        if columns <= size * 3 // 2:
            pieces = even_slices(rows, max(1, size // columns))
            return _Strips(self, Slices(self.batch, 1), pieces, Slices(columns, columns), lanes)
        return _Strips(self, Slices(self.batch, 1), Slices(rows, 1), even_slices(columns, size), lanes)


class _Strips(Sequence[Strip]):
    """A lazy sequence of all strips, since there may be as many as windows."""

    def __init__(
        self, windows: Windows, images: Sequence[slice], rows: Sequence[slice], columns: Sequence[slice], lanes: int
    ) -> None:
        self._windows, self._pieces, self._lanes = windows, (images, rows, columns), lanes
        self._numbers = range(len(images) * len(rows) * len(columns))

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            part = object.__new__(_Strips)
            part._windows, part._pieces, part._lanes, part._numbers = (
                self._windows,
                self._pieces,
                self._lanes,
                self._numbers[number],
            )
            return part
        number, column = divmod(self._numbers[number], len(self._pieces[2]))
        image, row = divmod(number, len(self._pieces[1]))
        images, rows, columns = self._pieces[0][image], self._pieces[1][row], self._pieces[2][column]
        _, height, width, _ = windows = self._windows
        start = (images.start * height.out + rows.start) * width.out + columns.start
        stop = start + (images.stop - images.start) * (rows.stop - rows.start) * (columns.stop - columns.start)
        lane = 0 if self._lanes == 1 else (start + stop) * self._lanes // (2 * windows.count)
        return Strip((images, rows, columns), start, stop, lane)


def by_lane(strips: Sequence[Strip]) -> list[tuple[int, Sequence[Strip]]]:
    """Group strips, which are sorted by worker thread, into pairs (thread number, its strips)."""
    found: list[tuple[int, Sequence[Strip]]] = []
    while strips:
        lane = strips[0].lane
        end = len(strips) if strips[-1].lane == lane else bisect_left(strips, lane + 1, key=lambda strip: strip.lane)
        found.append((lane, strips[:end]))
        strips = strips[end:]
    return found


def longest_strip(strips: Sequence[Strip]) -> int:
    """Return the number of windows of the first strip, which has the most; 0 if there is none."""
    return strips[0].stop - strips[0].start if strips else 0


@lru_cache(maxsize=1024)
def _are_rows(h: Axis, w: Axis) -> bool:
    side_by_side = w.filter == w.stride and w.padded == w.out * w.filter
    in_rows = h.filter == 1 and h.stride == 1 and h.padded == h.out
    whole = h.out == w.out == 1 and h.filter == h.padded and w.filter == w.padded
    return (in_rows and side_by_side) or whole


@lru_cache(maxsize=4096)
def _rows_read(h: Axis, begin: int | None, end: int) -> Rows:
    """Return the input rows that the output rows from `begin` to `end` read; all rows if `begin` is None."""
    first, last = 0, h.padded
    if begin is not None:
        first, last = begin * h.stride, min(h.padded, (end - 1) * h.stride + h.span)
    begin, end = max(first, h.before), min(last, h.before + h.size)
    return Rows(slice(first, last), slice(begin - h.before, max(begin, end) - h.before), begin - first)


def shared_strips(windows: Windows, size: int, by_image: bool, lanes: int) -> Sequence[Strip]:
    """Divide the windows into strips of about `size`, balanced over `lanes` worker threads."""
    if lanes > 1:
        wanted = -(-windows.count // max(size, 1))
        size = -(-windows.count // (-(-wanted // lanes) * lanes))
    if windows.count <= _KEPT * size and not (by_image and windows.batch > _KEPT):
        return _few_strips(windows, size, by_image, lanes)
    return windows.strips(size, by_image, lanes)


@lru_cache(maxsize=512)
def _few_strips(windows: Windows, size: int, by_image: bool, lanes: int) -> Sequence[Strip]:
    """Return the strips of `Windows.strips` as a tuple, from a cache, as layers of a model often have the same windows."""
    return tuple(windows.strips(size, by_image, lanes))


def strided(array: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Array:
    """Return a strided view that begins `offset` bytes into an array; numpy's `as_strided` takes ten times as long.

    Raises:
        ValueError: the view would reach beyond the array.
    """
    view: Array = np.ndarray(shape, array.dtype, array, offset, strides)
    return view


def border_calls(padded: Array, value: Any, top: int, height: int, left: int, width: int) -> list[Call]:
    """Return numpy calls that fill a contiguous NHWC map with `value` except for a rectangle of rows and columns.

    The end of one row and the start of the next are adjacent in memory, so that three fills suffice.
    """
    batch, rows, columns, channels = padded.shape
    row, kept = columns * channels, width * channels
    total = rows * row
    if not batch or not total:
        return []
    if not height:
        return [(padded.fill, (value,))]
    flat = padded.reshape(batch, total)
    first = top * row + left * channels
    last = first + (height - 1) * row + kept
    pieces: list[Array] = []
    if first:
        pieces.append(flat[:, :first])
    if height > 1 and kept < row:
        begin = first + kept
        pieces.append(flat[:, begin : begin + (height - 1) * row].reshape(batch, height - 1, row)[:, :, : row - kept])
    if last < total:
        pieces.append(flat[:, last:])
    return [(piece.fill, (value,)) for piece in pieces]
