"""Padding at map edges: windows that include padding, and PADs fused into a convolution, whose border is never written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, Tensor, TensorType, ensure
from oplet.kernels.windows import Axis, Windows2D
from oplet.records import Row
from oplet.schema.enums import BuiltinOperator
from oplet_compiled_ops.overriding import has_numpy_kernel

__all__ = ["Border", "absorbed_border", "border_to_absorb", "edges"]

_BYTES = (TensorType.INT8, TensorType.UINT8)


def edges(width: int, stride: int, dilation: int, left: int, room: int) -> tuple[int, int]:
    """Return how many windows at a row's start, and how many at its end, include padding.

    `width` taps at a distance of `dilation` make a window; there are `left` columns of padding before the row, and the last
    window covers `room` columns that are in memory.
    """
    missing = max(0, (width - 1) * dilation + 1 - room)
    return -(-left // stride), -(-missing // stride)


class Border(Row):
    """The border that a PAD, fused into a convolution, would add around its map."""

    source: Tensor  #: The map, without the border.
    top: int  #: The rows of border above the map.
    left: int  #: The columns of border to the left of the map.

    def around(self, windows: Windows2D) -> Windows2D:
        """Return the windows, given over the map with its border, as windows over the map without it, whose padding is larger
        instead.
        """
        _, height, width, _ = self.source.shape
        rows = _within(windows.height, height, self.top)
        return Windows2D(windows.batch, rows, _within(windows.width, width, self.left), windows.channels)


def _within(axis: Axis, size: int, before: int) -> Axis:
    ensure(axis.before + before < axis.span, "its border is wider than a window.")
    ensure(axis.padded - before - axis.before - size < axis.span, "its border is wider than a window.")
    return Axis(size, axis.filter, axis.stride, axis.dilation, axis.out, axis.before + before)


def border_to_absorb(node: Node, makers: Sequence[Node]) -> Sequence[Node]:
    """Return, in a list, the PAD among `makers` that can be fused into a convolution; an empty one if there is none.

    It produces the convolution's input, and pads rows and columns by a constant number of zeros (or zero points).

    Args:
        node: the convolution.
        makers: the nodes that produce its inputs and that nothing else reads.
    """
    return [
        maker
        for maker in makers
        if maker.op is BuiltinOperator.PAD
        and has_numpy_kernel(maker)
        and maker.outputs[0] is node.inputs[0]
        and len(maker.inputs) == 2
        and all(tensor is not None for tensor in maker.inputs)
        and maker.inputs[1].is_constant
        and _pads_rows_and_columns(maker.inputs[1])
        and _is_padded_alike(maker.inputs[0])
        and not _is_hybrid(node)
    ]


def _pads_rows_and_columns(paddings: Tensor) -> bool:
    if paddings.shape != (4, 2):
        return False
    batch, rows, columns, channels = np.asarray(paddings.data).tolist()
    return not any((*batch, *channels)) and min(*rows, *columns) >= 0


def _is_hybrid(node: Node) -> bool:
    return node.inputs[0].type is TensorType.FLOAT32 and node.has_input(1) and node.inputs[1].type is not TensorType.FLOAT32


def _is_padded_alike(source: Tensor) -> bool:
    """Return whether a PAD of `source` fills its border as a convolution pads its input: with zeros, or the zero point."""
    return source.type is TensorType.FLOAT32 or (source.type in _BYTES and source.quantization is not None)


def absorbed_border(node: Node) -> Border:
    """Return the border of the PAD that is fused into a node."""
    [pad] = node.absorbed
    _, (top, _), (left, _), _ = np.asarray(pad.inputs[1].data).tolist()
    return Border(pad.inputs[0], top, left)
