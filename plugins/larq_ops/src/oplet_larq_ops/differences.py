"""In how many bits the windows of a map and the filters differ, which is what a binary convolution sums up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import Context, Node, Tensor, TensorType, charge
from oplet.kernels.arrays import Array
from oplet.kernels.windows import Axis
from oplet.schema.enums import ActivationFunctionType
from oplet_larq_ops.bits import AT_ONCE, bits_in, count_differences, long_words
from oplet_larq_ops.geometry import Chunk, Chunks, Taps, each_chunk, taps_of
from oplet_larq_ops.outputs import Line, bounds, line

__all__ = ["Convolution", "Differences", "Missing", "add_scratch"]

#: Taps whose places are kept between runs; those of more are worked out again.
_KEPT_TAPS = 1 << 20


class Convolution(NamedTuple):
    """The geometry and options of a binary convolution, read from a node."""

    height: Axis
    width: Axis
    groups: int
    channels: int  #: of a group
    zero_padding: bool
    activation: ActivationFunctionType
    chunks: Chunks

    @property
    def windows(self) -> int:
        """The number of windows (output positions) of one image."""
        return self.height.out * self.width.out

    @property
    def taps(self) -> int:
        """The number of positions (taps) in a window: filter height * width."""
        return self.height.filter * self.width.filter

    @property
    def bits(self) -> int:
        """The number of weights of a filter in one group: taps * channels."""
        return self.taps * self.channels

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and highest doubled Hamming distance after the clamp by the fused activation."""
        return bounds(self.activation, self.bits)

    def line(self, multiplier: Array, bias: Array, output: Tensor) -> Line:
        """Return the linear functions that map doubled Hamming distances to output values, per channel; see `outputs.line`."""
        return line(multiplier, bias, self.bits, output)


class Missing(NamedTuple):
    """Corrections of doubled Hamming distances of windows at the edge, where padding counts as 0 and not as +1."""

    windows: Array
    values: Array  #: of shape (windows, filters)


def add_scratch(context: Context, node: Node, found: Convolution, filters: Tensor) -> None:
    """Request scratch memory for one chunk: patches, their rows and columns of words, XOR results, bit counts and sums."""
    count, depth = filters.shape[0] // found.groups, filters.shape[3]
    windows, long = found.chunks.most, -(-found.taps * depth // 2)
    at_once = max(count, windows, AT_ONCE)
    for shape, type in (
        ((windows * found.taps * depth * found.groups,), TensorType.INT32),
        ((windows, 2 * long), TensorType.INT32),
        ((long * windows,), TensorType.UINT64),
        ((at_once,), TensorType.UINT64),
        ((at_once,), TensorType.UINT8),
        ((count * windows,), TensorType.UINT32 if long * 64 > 0xFFFF else TensorType.UINT16),
        ((windows, filters.shape[0]), TensorType.INT32),
    ):
        context.add_temporary(node, shape, type)


class Differences:
    """Computes the Hamming distances between windows and filters chunk by chunk, in scratch memory that all chunks share."""

    def __init__(self, node: Node, found: Convolution, source: Array, filters: Tensor) -> None:
        self._found, self._filters = found, filters
        self._pixels = source.reshape(len(source), -1, source.shape[3])
        temporaries = [tensor.data for tensor in node.temporaries]
        self._taken, self._words, self._columns, self._differing, self._counts, self._totals, self._sums = temporaries[:7]
        #: Whether windows are the columns that rows of filters are compared with, or the other way round: many at once are faster.
        self._windows_inside = found.chunks.most >= filters.shape[0] // found.groups
        self._packed = node.cached(("filters", self._windows_inside), [filters], self._pack, shared=True)
        self._values: Array | None = None
        if found.zero_padding:
            self._values = node.cached("values of taps", [filters], self._values_of_taps, shared=True)
        self._changes = not filters.is_constant
        self._places: dict[int, Taps] = {}
        if found.windows * found.taps <= _KEPT_TAPS:
            charge(9 * found.windows * found.taps)
            chunks = each_chunk(found.chunks, 1, found.windows)
            self._places = {chunk.windows.start: taps_of(found.height, found.width, chunk.windows) for chunk in chunks}

    def _pack(self) -> list[Array]:
        """Return the filters of each group as rows or columns of long words."""
        filters, found = self._filters.data, self._found
        words, each = long_words(filters.reshape(len(filters), -1)), len(filters) // found.groups
        groups = [words[first : first + each] for first in range(0, len(filters), each)]
        return groups if self._windows_inside else [np.ascontiguousarray(group.T) for group in groups]

    def _values_of_taps(self) -> Array:
        """Return the sum of +1 and -1 of each tap of each filter, which it has where it meets +1 only."""
        filters = self._filters.data
        charge(16 * filters.size)  # counts of each word
        sums = self._found.channels - 2 * bits_in(filters).sum(-1)
        return np.ascontiguousarray(sums.reshape(len(filters), -1).T, np.float64)

    def of(self, chunk: Chunk) -> tuple[Array, Missing | None]:
        """Return twice the Hamming distance of each window of a chunk from each filter, int32, and corrections for zero padding.

        The corrections are None if no window of the chunk needs any.
        """
        if self._changes and chunk.maps.start == chunk.windows.start == 0:  # once in a run
            charge(3 * self._filters.data.nbytes)
            self._packed = self._pack()
            self._values = self._values_of_taps() if self._found.zero_padding else None
        found = self._found
        taps = self._places.get(chunk.windows.start) or taps_of(found.height, found.width, chunk.windows)
        sums = self._sums[: chunk.size]
        taken = self._take(chunk, taps)
        depth = taken.shape[2] // found.groups
        each = len(self._filters.data) // found.groups
        for number, packed in enumerate(self._packed):
            words = self._long(taken[:, :, number * depth : (number + 1) * depth])
            np.multiply(self._compare(words, packed, each), 2, out=sums[:, number * each : (number + 1) * each], casting="unsafe")
        return sums, self._missing(chunk, taps.outside, self._values)

    def _take(self, chunk: Chunk, taps: Taps) -> Array:
        """Return the words of each tap of each window; 0, which is +1, of those outside."""
        maps = self._pixels[chunk.maps]
        size = taps.pixels.size * maps.shape[2]
        taken = self._taken[: len(maps) * size].reshape(len(maps), taps.pixels.size, maps.shape[2])
        np.take(maps, taps.pixels.reshape(-1), axis=1, out=taken, mode="clip")
        if taps.outside is not None:
            taken[:, taps.outside.reshape(-1)] = 0
        return taken.reshape(chunk.size, -1, maps.shape[2])

    def _long(self, taken: Array) -> Array:
        """Return the taps of each window as one row of long words."""
        rows = taken.reshape(len(taken), -1)
        if rows.shape[1] % 2 or not rows.flags.c_contiguous:
            words = self._words[: len(rows)]
            words[:, rows.shape[1] :] = 0
            words[:, : rows.shape[1]] = rows
            rows = words
        return rows.view(np.uint64)

    def _compare(self, words: Array, packed: Array, filters: int) -> Array:
        """Return the number of bits in which each window differs from each filter."""
        count = len(words)
        totals = self._totals[: count * filters]
        if not self._windows_inside:
            totals = totals.reshape(count, filters)
            count_differences(words, packed, totals, self._differing, self._counts)
            return totals
        columns = self._columns[: words.size].reshape(words.shape[::-1])
        np.copyto(columns, words.T)
        totals = totals.reshape(filters, count)
        count_differences(packed, columns, totals, self._differing, self._counts)
        turned: Array = totals.T
        return turned

    @staticmethod
    def _missing(chunk: Chunk, outside: Array | None, values: Array | None) -> Missing | None:
        """Return what the windows at the edge lack; None where nothing is missing."""
        if outside is None or values is None:
            return None
        edge = np.flatnonzero(outside.any(1))
        lacking = (outside[edge].astype(np.float64) @ values).astype(np.int32)
        maps = chunk.maps.stop - chunk.maps.start
        windows = (np.arange(maps)[:, None] * len(outside) + edge).reshape(-1)
        return Missing(windows, np.tile(lacking, (maps, 1)))
