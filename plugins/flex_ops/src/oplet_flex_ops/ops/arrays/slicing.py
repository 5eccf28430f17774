"""Ops on slices: Slice, StridedSlice, StridedSliceGrad, and TensorStridedSliceUpdate.

Numerics: tensorflow/core/kernels/{slice_op.cc,strided_slice_op.cc}, tensorflow/core/util/strided_slice_op.cc
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from oplet import Node, Tensor, TensorType, ensure
from oplet.kernels.arrays import Shape, Thunk
from oplet.kernels.axes import read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import shaped, viewed
from oplet_flex_ops.signature import INDICES

#: Bits of the masks.
_MOST_ENTRIES = 32


def _slices(node: Node) -> tuple[Any, ...]:
    source, begin, size = node.inputs[0], read_ints(node.inputs[1]), read_ints(node.inputs[2])
    ensure(
        len(begin) == len(size) == source.ndim,
        f"begin {begin} and size {size} must have an entry for each of the {source.ndim} axes of {source}.",
    )
    found: list[slice] = []
    for start, count, length in zip(begin, size, source.shape):
        count = length - start if count == -1 else count
        ensure(
            start >= 0 and count >= 0 and start + count <= length,
            f"begin {begin} and size {size} lead outside of {source}, of shape {list(source.shape)}.",
        )
        found.append(slice(start, start + count))
    return (*found, ...)


SLICE = viewed(
    "Slice",
    "input: T, begin: Index[1]!, size: Index[1]! -> output: T",
    lambda node, given: [tuple(part.stop - part.start for part in _slices(node)[:-1])],
    Index=INDICES,
)(lambda node, given: [node.inputs[0].data[_slices(node)]])


class _Masks(NamedTuple):
    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int


class _Slice(NamedTuple):
    """A strided slice as a numpy index, and the shape that it selects."""

    where: tuple[Any, ...]
    shape: Shape


def _masks(attributes: Attributes) -> _Masks:
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    masks = _Masks(*(attributes.integer(name, default=0) for name in names))
    ensure(masks.ellipsis & (masks.ellipsis - 1) == 0, f"the ellipsis_mask {masks.ellipsis:#b} sets more than one ellipsis.")
    return masks


def _strided(shape: Sequence[int], entries: Sequence[Tensor], masks: _Masks) -> _Slice:
    """Return the slice that begin, end, strides and masks select from a tensor of `shape`.

    Raises:
        EnsureError: the entries do not fit the shape.
    """
    begin, end, strides = (read_ints(tensor) for tensor in entries)
    count = len(begin)
    ensure(
        count == len(end) == len(strides) < _MOST_ENTRIES, f"begin, end and strides must have one length, below {_MOST_ENTRIES}."
    )
    ensure(0 not in strides, f"the strides {strides} must not be zero.")
    kinds = ["ellipsis" if masks.ellipsis >> i & 1 else "new" if masks.new_axis >> i & 1 else "axis" for i in range(count)]
    named = kinds.count("axis")
    ensure(named <= len(shape), f"begin has entries for {named} axes, but there are {len(shape)}.")
    if "ellipsis" not in kinds:
        kinds.append("ellipsis")
    index: list[Any] = []
    sizes: list[int] = []
    left = iter(shape)
    for entry, kind in enumerate(kinds):
        if kind == "ellipsis":
            whole = [next(left) for _ in range(len(shape) - named)]
            index += [slice(None)] * len(whole)
            sizes += whole
        elif kind == "new":
            index.append(None)
            sizes.append(1)
        else:
            size = next(left)
            taken = _range(begin[entry], end[entry], strides[entry], size, masks.begin >> entry & 1, masks.end >> entry & 1)
            if masks.shrink >> entry & 1:
                at = begin[entry] + size if begin[entry] < 0 else begin[entry]
                ensure(
                    strides[entry] > 0 and 0 <= at < size, f"the slice takes position {begin[entry]} of an axis of size {size}."
                )
                index.append(at)
                continue
            stop = taken.stop if taken.stop >= 0 else None
            index.append(slice(taken.start, stop, taken.step) if taken else slice(0, 0))
            sizes.append(len(taken))
    return _Slice((*index, ...), tuple(sizes))


def _range(begin: int, end: int, stride: int, size: int, begin_open: int, end_open: int) -> range:
    low, high = (0, size) if stride > 0 else (-1, size - 1)

    def place(at: int) -> int:
        return min(max(at + size if at < 0 else at, low), high)

    start = (low if stride > 0 else high) if begin_open else place(begin)
    stop = (high if stride > 0 else low) if end_open else place(end)
    return range(start, stop, stride)


_TYPES = (*INDICES, TensorType.INT16)
_ENTRIES = "begin: Index[1]!, end: Index[1]!, strides: Index[1]!"

STRIDEDSLICE = viewed(
    "StridedSlice",
    f"input: T, {_ENTRIES} -> output: T",
    lambda node, masks: [_strided(node.inputs[0].shape, node.inputs[1:4], masks).shape],
    _masks,
    Index=_TYPES,
)(lambda node, masks: [node.inputs[0].data[_strided(node.inputs[0].shape, node.inputs[1:4], masks).where]])


def _grad_shapes(node: Node, masks: _Masks) -> list[Shape]:
    sizes = read_ints(node.inputs[0])
    ensure(len(sizes) <= _MOST_ENTRIES and min(sizes, default=0) >= 0, f"{node.inputs[0]} holds {sizes}, which is no shape.")
    selected = _strided(sizes, node.inputs[1:4], masks).shape
    ensure(node.inputs[4].shape == selected, f"{node.inputs[4]} must have the shape {list(selected)} of the slice.")
    return [tuple(sizes)]


@shaped("StridedSliceGrad", f"shape: Index[1]!, {_ENTRIES}, dy: T -> output: T", _grad_shapes, _masks, Index=INDICES)
def STRIDEDSLICEGRAD(node: Node, masks: _Masks) -> Thunk:
    output, source = node.outputs[0].data, node.inputs[4].data
    target = output[_strided(output.shape, node.inputs[1:4], masks).where]
    zero = b"" if output.dtype == object else 0

    def run() -> None:
        output.fill(zero)
        target[...] = source

    return run


def _update_shapes(node: Node, masks: _Masks) -> list[Shape]:
    source, value = node.inputs[0], node.inputs[4]
    selected = _strided(source.shape, node.inputs[1:4], masks).shape
    ensure(value.shape == selected, f"{value} must have the shape {list(selected)} of the slice.")
    return [source.shape]


@shaped("TensorStridedSliceUpdate", f"input: T, {_ENTRIES}, value: T -> output: T", _update_shapes, _masks, Index=INDICES)
def TENSORSTRIDEDSLICEUPDATE(node: Node, masks: _Masks) -> Thunk:
    source, value, output = node.inputs[0].data, node.inputs[4].data, node.outputs[0].data
    target = output[_strided(output.shape, node.inputs[1:4], masks).where]

    def run() -> None:
        output[...] = source
        target[...] = value

    return run
