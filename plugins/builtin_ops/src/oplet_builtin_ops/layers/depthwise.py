"""Depthwise convolution in numpy: each channel has its own filter, so there is no matrix product.

`einsum` multiplies and adds in one pass over long inner loops: a tap's values of several neighbouring windows, whose channels are
adjacent in memory, are one vector, and the weights are repeated to match. If windows have a stride along columns, columns are first
sorted by their remainder (their *phase*), so that neighbours are adjacent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from oplet import Context, Node, Tensor, TensorType
from oplet.kernels.arrays import Array
from oplet.records import Row
from oplet_builtin_ops.layers.program import Call, convert, lane_count, run_lanes
from oplet_builtin_ops.layers.windows import Rows, Strip, Windows, border_calls, by_lane, longest_strip, shared_strips, strided

__all__ = ["Taps", "plan_taps"]


#: The function that np.einsum calls when it need not optimize the order of products.
_einsum: Final[Any] = (np._core if hasattr(np, "_core") else np.core).multiarray.c_einsum

#: The values of an inner loop: enough to make its overhead small, few enough for the first-level cache.
_INNER = 1024
#: The most weights that repeating makes.
_REPEATED = 1 << 20
#: From so many channels on, inner loops are long enough without joining windows.
_MANY_CHANNELS = 256
#: The most phases that columns are sorted by.
_PHASES = 64

#: The sums of a strip; the second number is for strips that sort columns, which read several columns for each sum.
_STRIP, _SORTED_STRIP = 1 << 16, 20 << 10
#: The most products of a strip: with very many taps, windows are computed few at a time, so that a call does not take long.
_PRODUCTS = 1 << 28

#: About the seconds of a tap, and of the last passes over an output.
_TAP, _FINISH = 1.2e-10, 3e-10


class Taps(Row):
    """Plan of a depthwise convolution, made by `prepare` for `bind`.

    Attributes:
        windows: the windows over the input, which has as many channels as the output.
        multiplier: the number of output channels per input channel.
        phases: the number of column phases (see `sorting`) that taps read; 1 if columns are not sorted.
        strips: the blocks of consecutive windows (strips) that are computed together.
        longest: the number of windows of the largest strip.
        padded: the input with its padding, its channels repeated, in the type to compute in; None if the input serves as it is.
            For a batch of one it holds only what one strip reads, so that it stays in the cache; each thread has its own.
        accumulators: scratch for the sums of a strip; None if they are written to the output.
        spare: scratch as large as a strip, if there is more than one phase.
        lanes: the number of threads that share the strips; each has its own part of `accumulators` and `spare`.
        context: the node's context, which has the worker threads.
        node: the node, whose constant weights are repeated once for all interpreters of the model.
    """

    windows: Windows
    multiplier: int
    phases: int
    strips: Sequence[Strip]
    longest: int
    padded: Tensor | None
    accumulators: Tensor | None
    spare: Tensor | None
    lanes: int
    context: Context
    node: Node

    @property
    def by_strip(self) -> bool:
        """Whether `padded` holds only the rows that one strip per thread reads, rather than the whole map."""
        return self.windows.batch == 1

    @property
    def sorting(self) -> int:
        """The column stride: columns are sorted by remainder (phase), so that windows read adjacent values; 1 for no sorting."""
        return self.windows.width.stride if self.phases > 1 else 1

    def calls(
        self, source: Array, pad: Any, weights: Array, output: Array, finish: Callable[[Strip, Array], list[Call]]
    ) -> Iterator[Call]:
        """Yield the numpy calls that compute the depthwise convolution.

        Args:
            source: the input.
            pad: the value of its padding.
            weights: (filter height, filter width, channels), of the type to compute in.
            output: (windows, channels); receives the sums if there are no accumulators.
            finish: returns the calls that turn a strip's sums into its outputs: bias, activation, requantization.
        """
        if not self.strips:
            return
        planes = [source]
        if self.padded is not None and not self.by_strip:
            planes = list(self.padded.data[0])
            yield from self._fill_calls(source, pad, planes, self.windows.rows_read(self.strips))
        tiled: dict[tuple[int, int], Array] = {}
        lanes = [
            partial(self._lane_calls, lane, strips, source, pad, planes, weights, tiled, output, finish)
            for lane, strips in by_lane(self.strips)
        ]
        yield from run_lanes(self.context, lanes)

    def _lane_calls(
        self,
        lane: int,
        strips: Sequence[Strip],
        source: Array,
        pad: Any,
        planes: list[Array],
        weights: Array,
        tiled: dict[tuple[int, int], Array],
        output: Array,
        finish: Callable[[Strip, Array], list[Call]],
    ) -> Iterator[Call]:
        """Yield the numpy calls by which one worker thread (`lane`) computes its strips.

        Args:
            planes: the map, sorted by columns if that is done for all strips at once.
            tiled: the weights that were repeated so far.
        """
        channels = self.windows.channels
        planes_of_strip = self.padded.data[lane] if self.padded is not None and self.by_strip else None
        for strip in strips:
            start, stop = strip.start, strip.stop
            count = stop - start
            block = output[start:stop]
            if self.accumulators is not None:
                block = self.accumulators.data[lane, : count * channels].reshape(count, channels)
            images, rows, seen = strip.where
            if planes_of_strip is not None:
                read = self.windows.rows_read([strip])
                size = read.padded.stop - read.padded.start
                planes = list(planes_of_strip[:, :, :size])
                yield from self._fill_calls(source, pad, planes, Rows(slice(0, size), read.source, read.top))
                rows = slice(0, rows.stop - rows.start)
                strip = Strip((images, rows, seen), start, stop, lane)
            shape = images.stop - images.start, rows.stop - rows.start, seen.stop - seen.start, channels
            yield from self._phase_calls(planes[0], 0, strip, weights, tiled, block.reshape(shape))
            if self.spare is not None:
                spare = self.spare.data[lane, : count * channels]
                for phase in range(1, self.phases):
                    yield from self._phase_calls(planes[phase], phase, strip, weights, tiled, spare.reshape(shape))
                    yield np.add, (block, spare.reshape(block.shape), block)
            yield from finish(strip, block)

    def _fill_calls(self, source: Array, pad: Any, planes: list[Array], rows: Rows) -> Iterator[Call]:
        before, sorting = self.windows.width.before, self.sorting
        source = source[:, rows.source]
        batch, height, _, channels = source.shape
        for phase, plane in enumerate(planes):
            # Column `phase + j * sorting` of the padded map is column j of the plane.
            first = max(0, -(-(before - phase) // sorting))
            start = phase + first * sorting - before
            columns = source[:, :, start::sorting]
            count = columns.shape[2]
            plane = plane[:, rows.padded]
            yield from border_calls(plane, pad, rows.top, height, first, count)
            if not height:
                continue
            target = plane[:, rows.top : rows.top + height, first : first + count]
            if self.multiplier > 1:
                yield convert, (target.reshape(batch, height, count, channels, self.multiplier), columns[..., None])
            else:
                yield convert, (target, columns)

    def _phase_calls(
        self, plane: Array, phase: int, strip: Strip, weights: Array, tiled: dict[tuple[int, int], Array], target: Array
    ) -> Iterator[Call]:
        _, h, w, channels = self.windows
        images, rows, columns = strip.where
        sorting = self.sorting
        step = w.stride // sorting
        image, row, column, item = plane.strides
        if sorting > 1:
            weights = weights[:, phase::sorting]
        i, j, _ = weights.shape
        b, height, length, _ = target.shape
        joined = _joined(length, channels, i * j) if step == 1 else 1
        origin = images.start * image + rows.start * h.stride * row + columns.start * step * column
        done = 0
        for width in (joined, length % joined):
            blocks = (length - done) // width if width else 0
            if not blocks:
                continue
            patches = strided(
                plane,
                (b, height, blocks, i, j, width * channels),
                (image, row * h.stride, column * step * width, row * h.dilation, column * w.dilation, item),
                origin + done * step * column,
            )
            factors = tiled.get((phase, width))
            if factors is None:
                factors = tiled[phase, width] = self._repeated(weights, phase, width)
            part = target if blocks * width == length else target[:, :, done : done + blocks * width]
            part = part.reshape(b, height, blocks, width * channels)
            yield _sum_of_products, (patches, factors, part)
            done += blocks * width

    def _repeated(self, weights: Array, phase: int, width: int) -> Array:
        """Return the filter weights of one column phase, tiled over `width` neighbouring windows."""
        if width == 1:
            return weights

        def make() -> Array:
            height, columns, channels = weights.shape
            return weights[:, :, None].repeat(width, 2).reshape(height, columns, width * channels)

        key = "repeated weights", weights.dtype, self.node.inputs[0].type, phase, self.sorting, width
        return self.node.cached(key, [self.node.inputs[1]], make, shared=True)


def _sum_of_products(patches: Array, weights: Array, target: Array) -> None:
    _einsum("bhnijl,ijl->bhnl", patches, weights, out=target)


@lru_cache(maxsize=1024)
def _joined(columns: int, channels: int, taps: int) -> int:
    """Return how many neighbouring windows to compute as one vector, preferably a divisor of `columns`."""
    wanted = max(1, min(columns, _INNER // max(channels, 1), _REPEATED // max(channels * taps, 1)))
    return next((n for n in range(wanted, wanted // 2, -1) if columns % n == 0), wanted)


def plan_taps(
    context: Context,
    node: Node,
    windows: Windows,
    multiplier: int,
    *,
    source: TensorType,
    compute: TensorType,
    in_place: bool = False,
    by_image: bool = False,
) -> Taps:
    """Plan a depthwise convolution and request scratch memory for it.

    Args:
        context: the node's context.
        node: the node.
        windows: the windows over the input, which has as many channels as the output.
        multiplier: the number of output channels per input channel.
        source: the type of the input.
        compute: the float type to compute in.
        in_place: whether the sums are written into the output itself.
        by_image: whether no strip may have windows of two images.
    """
    channels, width = windows.channels, windows.width
    sorts = width.stride > 1 and width.dilation == 1 and channels < _MANY_CHANNELS
    phases = min(width.stride, width.filter) if sorts else 1
    if phases > _PHASES:
        phases = 1
    lanes = lane_count(context, windows.count * channels * (windows.height.filter * width.filter * _TAP + _FINISH))
    sums = min(_STRIP if phases == 1 else _SORTED_STRIP, _PRODUCTS // (windows.height.filter * width.filter))
    strips = shared_strips(windows, max(1, sums // max(channels, 1)), by_image, lanes)
    longest = longest_strip(strips)
    largest = longest * channels
    needs_copy = windows.is_padded or source != compute or multiplier > 1 or phases > 1
    batch, height, columns, _ = windows.padded_shape
    sets = 1
    if batch == 1 and strips:
        sets = lanes
        height = max(rows.stop - rows.start for strip in strips for rows in [windows.rows_read([strip]).padded])
    shape = (sets, phases, batch, height, -(-columns // (width.stride if phases > 1 else 1)), channels)
    return Taps(
        windows,
        multiplier,
        phases,
        strips,
        longest,
        context.add_temporary(node, shape, compute) if needs_copy and strips else None,
        None if in_place else context.add_temporary(node, (lanes, largest), compute),
        context.add_temporary(node, (lanes, largest), compute) if phases > 1 else None,
        lanes,
        context,
        node,
    )
