"""Convolution as matrix products: patches are gathered into strips, a strip at a time is multiplied and finished.

A strip stays in the cache from the gathering to the last pass over its outputs. Windows that are consecutive pieces of the map
(a 1x1 filter, or one as large as the map) are multiplied where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Tensor, TensorType
from oplet_builtin_ops.layers.program import Call, convert, lane_count, run_lanes
from oplet_builtin_ops.layers.rows import strip_size
from oplet_builtin_ops.layers.windows import Strip, Windows, shared_strips

__all__ = ["Products", "filter_matrices", "plan_products"]

Array = NDArray[Any]


#: About how many seconds a product takes. The last passes over outputs do not count here: they are many short calls, from which
#: threads win nothing.
_PRODUCT = 1.5e-11
#: Outputs of a strip where threads share a layer: their calls should be long, see `program.lane_count`.
_SHARED = 1 << 17


@dataclass
class Products:
    """The matrix products of a convolution, as `prepare` lays them out for `bind`.

    Attributes:
        windows: over the input.
        groups: of channels that are convolved apart.
        filters: output channels.
        strips: the work, a strip at a time.
        longest: windows in the largest strip.
        padded: the input with its padding, None if it has none.
        columns: the patches of a strip, None if they need no gathering.
        accumulators: the products of a strip, None if they go straight to the output.
        lanes: how many threads share the strips; each has its own part of `columns` and `accumulators`.
        context: what starts the lanes.
        added: 1 if a last row of the matrices is added to each output, for which every patch ends in a one; else 0.
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
        """Products per output."""
        _, height, width, channels = self.windows
        return height.filter * width.filter * (channels // self.groups)

    def calls(
        self, source: Array, pad: Any, matrices: Array, output: Array, finish: Callable[[Strip, Array], list[Call]]
    ) -> list[Call]:
        """The calls that compute everything.

        Args:
            source: the input.
            pad: the value of its padding.
            matrices: the weights, (groups, depth + added, filters of a group), of the type to compute in.
            output: (windows, filters); where the products go if there are no accumulators.
            finish: the calls that finish a strip, given its products.
        """
        program: list[Call] = []
        if not self.strips:
            return program
        windows = self.windows
        lanes: list[list[Call]] = [[] for _ in range(self.lanes)]
        if self.padded is not None:
            padded = self.padded.data
            for number, strips in windows.padded_apart(self.strips):
                part = program if number < 0 else lanes[number]
                part += windows.padding_calls(source, padded, pad, strips)
            source = padded
        depth = self.depth
        if self.columns is None:
            seen = source.reshape(windows.count, depth)
        else:
            seen = source.reshape(-1, depth) if self._gathers_rows else windows.patches(source)
            if self.added:
                for lane, columns in zip(lanes, self.columns.data):
                    lane.append((columns[:, depth].fill, (1,)))
        for strip in self.strips:
            start, stop = strip.start, strip.stop
            block = output[start:stop]
            if self.accumulators is not None:
                block = self.accumulators.data[strip.lane, : stop - start]
            lane = lanes[strip.lane]
            if self.columns is None:
                lane.append((np.matmul, (seen[start:stop], matrices[0], block)))
            else:
                parts = self._gather(lane, seen, strip, self.columns.data[strip.lane])
                if self.groups == 1:
                    lane.append((np.matmul, (parts[0], matrices[0], block)))
                else:
                    width = self.filters // self.groups
                    for group in range(self.groups):
                        target = block[:, group * width : (group + 1) * width]
                        lane.append((np.matmul, (parts[group], matrices[group], target)))
            lane += finish(strip, block)
        return program + run_lanes(self.context, lanes)

    @property
    def _gathers_rows(self) -> bool:
        return self.groups == 1 and self.windows.are_rows

    def _gather(self, lane: list[Call], seen: Array, strip: Strip, columns: Array) -> Array:
        """Add the calls that gather the patches of a strip; return these, (groups, windows, depth + added).

        Args:
            seen: what all windows see.
            columns: where the patches go, with room for the largest strip.
        """
        count, depth, groups = strip.stop - strip.start, self.depth, self.groups
        parts = columns.reshape(-1)[: count * (depth + self.added) * groups].reshape(groups, count, depth + self.added)
        if self._gathers_rows:
            lane.append((convert, (parts[0, :, :depth], seen[strip.start : strip.stop])))
            return parts
        patches = seen[strip.where]
        size = self.windows.channels // groups
        target = parts.reshape(groups, *patches.shape[:-1], size)
        if groups == 1:
            lane.append((convert, (target[0], patches)))
        else:
            lane += [(convert, (target[g], patches[..., g * size : (g + 1) * size])) for g in range(groups)]
        return parts


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
    """Lay out the products of a convolution and ask for its scratch memory.

    Args:
        source: the type of the input.
        compute: the float type to multiply in.
        in_place: whether the output itself takes the products.
        by_image: whether no strip may hold windows of two images.
        added: as in `Products`; only for windows that are rows.
    """
    depth = windows.height.filter * windows.width.filter * (windows.channels // groups)
    gathered = source != compute or groups > 1 or not windows.are_rows
    size = strip_size(depth, filters // groups, gathered)
    lanes = lane_count(context, windows.count * filters * depth * _PRODUCT)
    if lanes > 1 and not gathered:
        size = max(size, _SHARED // filters)
    strips = shared_strips(windows, size, by_image, lanes)
    longest = max([strip.stop - strip.start for strip in strips], default=0)
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
    """Weights of shape (filters, ...) as one matrix per group, (groups, depth, filters of a group); a view."""
    filters = weights.shape[0]
    matrices: Array = weights.reshape(groups, filters // groups, -1).transpose(0, 2, 1)
    return matrices
