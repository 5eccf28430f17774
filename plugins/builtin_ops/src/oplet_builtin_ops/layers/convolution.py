"""Convolution as matrix products: patches are gathered (im2col) for a strip of windows, multiplied and finished, strip by strip.

A strip stays in the cache from the gathering to the last pass over its outputs. Windows that are consecutive pieces of the map (a
1x1 filter, or one as large as the map) are multiplied without gathering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType
from oplet.kernels.arrays import Array
from oplet.records import Row
from oplet_builtin_ops.layers.program import Call, convert, lane_count, run_lanes
from oplet_builtin_ops.layers.rows import strip_size
from oplet_builtin_ops.layers.windows import Strip, Windows, by_lane, longest_strip, shared_strips

__all__ = ["Products", "filter_matrices", "plan_products"]


#: About the seconds of a multiply-add. The last passes over outputs do not count: they are many short calls, which threads do not
#: make faster.
_PRODUCT = 1.5e-11
#: The outputs of a strip where threads share a layer, as their calls should be long, see `program.lane_count`.
_SHARED = 1 << 17
#: The most groups that get calls of their own; more are gathered and multiplied in one call, which takes longer per value.
_FEW_GROUPS = 64
#: The most values of the patches of a strip, of all groups together.
_GATHERED = 1 << 23


class Products(Row):
    """Plan of a convolution's matrix products, made by `prepare` for `bind`.

    Attributes:
        windows: the windows over the input.
        groups: the number of groups of channels, which are convolved separately.
        filters: the number of output channels.
        strips: the blocks of consecutive windows (strips) that are computed together.
        longest: the number of windows of the largest strip.
        padded: the input with its padding, None if it has none.
        columns: scratch for the patches of a strip (im2col); None if they need no gathering.
        accumulators: scratch for the products of a strip; None if they are written to the output.
        lanes: the number of threads that share the strips; each has its own part of `columns` and `accumulators`.
        context: the node's context, which has the worker threads.
        added: 1 if the matrices have a last row that is added to each output, for which every patch ends in a one; else 0.
    """

    windows: Windows
    groups: int
    filters: int
    strips: Sequence[Strip]
    longest: int
    padded: Tensor | None
    columns: Tensor | None
    accumulators: Tensor | None
    lanes: int
    context: Context
    added: int = 0

    @property
    def depth(self) -> int:
        """The number of products that are summed for an output value."""
        _, height, width, channels = self.windows
        return height.filter * width.filter * (channels // self.groups)

    def calls(
        self, source: Array, pad: Any, matrices: Array, output: Array, finish: Callable[[Strip, Array], list[Call]]
    ) -> Iterator[Call]:
        """Yield the numpy calls that compute the convolution.

        Args:
            source: the input.
            pad: the value of its padding.
            matrices: the weights, (groups, depth + added, filters of a group), of the type to compute in.
            output: (windows, filters); receives the products if there are no accumulators.
            finish: returns the calls that turn a strip's products into its outputs: bias, activation, requantization.
        """
        if not self.strips:
            return
        windows, padded = self.windows, None if self.padded is None else self.padded.data
        padded_at_once = padded is not None and windows.padded_apart(self.strips)[0][0] < 0
        if padded is not None and padded_at_once:
            yield from windows.padding_calls(source, padded, pad, self.strips)

        def lane_calls(lane: int, strips: Sequence[Strip]) -> Iterator[Call]:
            if padded is not None and not padded_at_once:
                yield from windows.padding_calls(source, padded, pad, strips)
            yield from self._lane_calls(lane, strips, source if padded is None else padded, matrices, output, finish)

        yield from run_lanes(self.context, [partial(lane_calls, *lane) for lane in by_lane(self.strips)])

    def _lane_calls(
        self,
        lane: int,
        strips: Sequence[Strip],
        source: Array,
        matrices: Array,
        output: Array,
        finish: Callable[[Strip, Array], list[Call]],
    ) -> Iterator[Call]:
        """Yield the numpy calls by which one worker thread (`lane`) computes its strips; padding is already written."""
        depth, columns = self.depth, None if self.columns is None else self.columns.data[lane]
        if columns is None:
            seen = source.reshape(self.windows.count, depth)
        else:
            seen = source.reshape(-1, depth) if self._gathers_rows else self.windows.patches(source)
            if self.added:
                yield columns[:, depth].fill, (1,)
        width = self.filters // self.groups
        for strip in strips:
            start, stop = strip.start, strip.stop
            block = output[start:stop]
            if self.accumulators is not None:
                block = self.accumulators.data[lane, : stop - start]
            if columns is None:
                yield np.matmul, (seen[start:stop], matrices[0], block)
            else:
                parts, gather = self._gather(seen, strip, columns)
                yield from gather
                if self.groups == 1:
                    yield np.matmul, (parts[0], matrices[0], block)
                elif self.groups <= _FEW_GROUPS:
                    for group in range(self.groups):
                        yield np.matmul, (parts[group], matrices[group], block[:, group * width : (group + 1) * width])
                else:
                    yield np.matmul, (parts, matrices, block.reshape(stop - start, self.groups, width).swapaxes(0, 1))
            yield from finish(strip, block)

    @property
    def _gathers_rows(self) -> bool:
        return self.groups == 1 and self.windows.are_rows

    def _gather(self, seen: Array, strip: Strip, columns: Array) -> tuple[Array, list[Call]]:
        """Return one strip's im2col matrix, (groups, windows, depth + added), and the numpy calls that fill it.

        Args:
            seen: a view of what all windows cover.
            strip: the strip.
            columns: memory for the patches of the largest strip.
        """
        count, depth, groups = strip.stop - strip.start, self.depth, self.groups
        parts = columns.reshape(-1)[: count * (depth + self.added) * groups].reshape(groups, count, depth + self.added)
        if self._gathers_rows:
            return parts, [(convert, (parts[0, :, :depth], seen[strip.start : strip.stop]))]
        patches = seen[strip.where]
        size = self.windows.channels // groups
        target = parts.reshape(groups, *patches.shape[:-1], size)
        if groups == 1:
            return parts, [(convert, (target[0], patches))]
        if groups <= _FEW_GROUPS:
            return parts, [(convert, (target[g], patches[..., g * size : (g + 1) * size])) for g in range(groups)]
        return parts, [(convert, (np.moveaxis(target, 0, -2), patches.reshape(*patches.shape[:-1], groups, size)))]


def plan_products(
    context: Context,
    node: Node,
    windows: Windows,
    filters: int,
    *,
    source: TensorType,
    compute: TensorType,
    groups: int = 1,
    in_place: bool = False,
    by_image: bool = False,
    added: int = 0,
) -> Products:
    """Plan the matrix products of a convolution and request scratch memory for them.

    Args:
        context: the node's context.
        node: the node.
        windows: the windows over the input.
        filters: the number of output channels.
        source: the type of the input.
        compute: the float type to multiply in.
        in_place: whether the products are written into the output itself; otherwise they get scratch memory.
        by_image: whether no strip may have windows of two images.
        added: 1 if the matrices have a last row that is added to each output, else 0.
    """
    depth = windows.height.filter * windows.width.filter * (windows.channels // groups)
    gathered = source != compute or groups > 1 or not windows.are_rows
    size = strip_size(depth, filters // groups, gathered)
    lanes = lane_count(context, windows.count * filters * depth * _PRODUCT)
    if gathered:
        size = max(1, min(size, _GATHERED // max(1, depth * groups)))
    if lanes > 1 and not gathered:
        size = max(size, _SHARED // filters)
    strips = shared_strips(windows, size, by_image, lanes)
    longest = longest_strip(strips)
    return Products(
        windows,
        groups,
        filters,
        strips,
        longest,
        context.add_temporary(node, windows.padded_shape, source) if windows.is_padded and strips else None,
        context.add_temporary(node, (lanes, longest, depth * groups + added), compute) if gathered else None,
        None if in_place else context.add_temporary(node, (lanes, longest, filters), compute),
        lanes,
        context,
        added,
    )


def filter_matrices(weights: Array, groups: int) -> Array:
    """Return a view of weights (filters, ...) as one matrix per group: (groups, depth, filters per group)."""
    filters = weights.shape[0]
    matrices: Array = weights.reshape(groups, filters // groups, -1).transpose(0, 2, 1)
    return matrices
