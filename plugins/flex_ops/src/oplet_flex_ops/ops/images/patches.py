"""ExtractImagePatches and ExtractVolumePatches: windows (im2col) flattened along the last axis.

Numerics: tensorflow/core/kernels/image/{extract_image_patches_op.cc,extract_volume_patches_op.cc}
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from oplet import Node, Registration, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import Settings, filled
from oplet_flex_ops.signature import NUMBERS, REALS
from oplet_flex_ops.windows import WindowAxis, taps, window_axis


class _Windows(NamedTuple):
    sizes: list[int]
    strides: list[int]
    rates: list[int]
    same: bool


def _inner(attributes: Attributes, name: str, rank: int, default: list[int] | None = None) -> list[int]:
    values = attributes.integers(name, count=rank, default=default)
    ensure(
        values[0] == values[-1] == 1 and min(values) > 0,
        f"the attribute '{name}' is {values}; it must be above zero, and 1 for batch and depth.",
    )
    return values[1:-1]


def _settings(rank: int) -> Settings:
    def read(attributes: Attributes) -> _Windows:
        return _Windows(
            _inner(attributes, "ksizes", rank),
            _inner(attributes, "strides", rank),
            _inner(attributes, "rates", rank, [1] * rank) if rank == 4 else [1] * (rank - 2),
            attributes.text("padding", "SAME", "VALID") == "SAME",
        )

    return read


def _axes(source: Shape, given: _Windows) -> list[WindowAxis]:
    sides = zip(source[1:-1], given.sizes, given.strides, given.rates)
    return [window_axis(size, window, stride, rate, given.same) for size, window, stride, rate in sides]


def _shapes(node: Node, given: _Windows) -> list[Shape]:
    source = node.inputs[0]
    ensure(source.ndim == len(given.sizes) + 2, f"{source} must have {len(given.sizes) + 2} dimensions.")
    return [(source.shape[0], *(axis.out for axis in _axes(source.shape, given)), prod(given.sizes) * source.shape[-1])]


def _patches(given: _Windows, outputs: list[Array], source: Array) -> None:
    axes, depth = _axes(source.shape, given), source.shape[-1]
    output = outputs[0].reshape(*outputs[0].shape[:-1], prod(given.sizes), depth)
    output.fill(0)
    for position, to, of in taps(axes):
        checkpoint()
        number = 0
        for tap, axis in zip(position, axes):
            number = number * axis.window + tap
        there: tuple[Any, ...] = (*to, number)
        output[there] = source[of]


def _patches_op(op: str, rank: int) -> Registration:
    name = "images" if rank == 4 else "input"
    types = (*NUMBERS, TensorType.BOOL) if rank == 4 else REALS
    return filled(op, f"{name}: T -> patches: T", _shapes, _settings(rank), T=types)(_patches)


EXTRACTIMAGEPATCHES = _patches_op("ExtractImagePatches", 4)
EXTRACTVOLUMEPATCHES = _patches_op("ExtractVolumePatches", 5)
