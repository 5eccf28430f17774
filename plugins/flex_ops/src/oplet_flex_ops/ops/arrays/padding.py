"""Ops that pad a tensor: Pad, PadV2, MirrorPad, and its gradient MirrorPadGrad.

Numerics: tensorflow/core/kernels/{pad_op.cc,mirror_pad_op.h}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Node, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import along, read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import shaped
from oplet_flex_ops.signature import INDICES, NUMBERS


def _paddings(node: Node) -> list[tuple[int, int]]:
    source, paddings = node.inputs[:2]
    ensure(
        paddings.shape == (source.ndim, 2), f"{paddings} must have a row of two for each of the {source.ndim} axes of {source}."
    )
    values = read_ints(paddings)
    ensure(min(values, default=0) >= 0, f"the paddings {values} must not be negative.")
    return list(zip(values[::2], values[1::2]))


def _pad_shapes(node: Node, given: Any) -> list[Shape]:
    return [tuple(size + sum(pads) for size, pads in zip(node.inputs[0].shape, _paddings(node)))]


def _core(array: Array, sizes: Shape, pads: list[tuple[int, int]]) -> Array:
    return array[tuple(slice(before, before + size) for size, (before, _) in zip(sizes, pads))]


def _pad(node: Node, given: Any) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    inner = _core(output, source.shape, _paddings(node))
    value = node.inputs[2].data if len(node.inputs) > 2 else None
    zero = b"" if source.dtype == object else source.dtype.type(0)

    def run() -> None:
        output.fill(zero if value is None else value[()])
        inner[...] = source

    return run


PAD = shaped("Pad", "input: T, paddings: Tpaddings[2]! -> output: T", _pad_shapes, Tpaddings=INDICES)(_pad)
PADV2 = shaped("PadV2", "input: T, paddings: Tpaddings[2]!, constant_values: T[0] -> output: T", _pad_shapes, Tpaddings=INDICES)(
    _pad
)


def _offset(attributes: Attributes) -> int:
    """Return 1 for REFLECT, which does not repeat the edge value, and 0 for SYMMETRIC."""
    return int(attributes.text("mode", "REFLECT", "SYMMETRIC") == "REFLECT")


def _ensure_mirrored(sizes: Shape, pads: list[tuple[int, int]], offset: int) -> None:
    for size, (before, after) in zip(sizes, pads):
        ensure(max(before, after) <= size - offset, f"the paddings {before} and {after} reach beyond a mirrored axis of {size}.")


def _mirror_shapes(node: Node, offset: int) -> list[Shape]:
    _ensure_mirrored(node.inputs[0].shape, _paddings(node), offset)
    return _pad_shapes(node, offset)


def _mirrored(array: Array, axis: int, size: int, pads: tuple[int, int], offset: int) -> list[tuple[Array, Array]]:
    """Return (pad view, reversed source view) for both ends of an axis."""
    before, after = pads
    end = before + size
    low = array[along(axis, slice(before + offset, before + offset + before))]
    high = array[along(axis, slice(end - offset - after, end - offset))]
    back = along(axis, slice(None, None, -1))
    return [(array[along(axis, slice(0, before))], low[back]), (array[along(axis, slice(end, end + after))], high[back])]


@shaped("MirrorPad", "input: T, paddings: Tpaddings[2]! -> output: T", _mirror_shapes, _offset, Tpaddings=INDICES)
def MIRRORPAD(node: Node, offset: int) -> Thunk:
    source, output, pads = node.inputs[0].data, node.outputs[0].data, _paddings(node)
    inner = _core(output, source.shape, pads)
    steps: list[tuple[Array, Array]] = []
    for axis, (size, pad) in enumerate(zip(source.shape, pads)):
        # The axes before are whole by now; of those behind, only the middle is there.
        there = output[tuple([slice(None)] * (axis + 1) + [slice(b, b + s) for s, (b, _) in zip(source.shape, pads)][axis + 1 :])]
        steps += _mirrored(there, axis, size, pad, offset)

    def run() -> None:
        inner[...] = source
        for target, part in steps:
            target[...] = part

    return run


def _mirror_grad_shapes(node: Node, offset: int) -> list[Shape]:
    pads = _paddings(node)
    sizes = tuple(size - sum(pad) for size, pad in zip(node.inputs[0].shape, pads))
    _ensure_mirrored(sizes, pads, offset)
    return [sizes]


@shaped(
    "MirrorPadGrad", "input: T, paddings: Tpaddings[2]! -> output: T", _mirror_grad_shapes, _offset, T=NUMBERS, Tpaddings=INDICES
)
def MIRRORPADGRAD(node: Node, offset: int) -> Thunk:
    source, output, pads = node.inputs[0].data, node.outputs[0].data, _paddings(node)
    folded = np.empty(source.shape, source.dtype)
    inner = _core(folded, output.shape, pads)
    steps: list[tuple[Array, Array]] = []
    there = folded
    for axis, (size, pad) in enumerate(zip(output.shape, pads)):
        steps += _mirrored(there, axis, size, pad, offset)
        there = there[along(axis, slice(pad[0], pad[0] + size))]

    def run() -> None:
        folded[...] = source
        for outside, part in steps:
            np.add(part, outside, out=part)
        output[...] = inner

    return run
