"""Ops that clip, add up or convert values: Clip, AddN, Cast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.operands import ensure_same_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.elementwise import same_shape
from oplet_flex_ops.numerics.operator import Step, operator, writing
from oplet_flex_ops.numerics.types import COMPLEX, EVERY, FLOATS, NUMBERS, SIGNED


def _add_n_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_same_shape(*node.inputs)
    return [node.inputs[0].shape]


@operator("N*T -> T", _add_n_shapes, T=NUMBERS)
@writing
def ADDN(first: Array, *more: Array) -> None:
    *others, output = more
    np.copyto(output, first)
    for other in others:
        np.add(output, other, output)


def _clip_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    values, *bounds = node.inputs
    for bound in bounds:
        fits = bound.shape in ((), values.shape)
        ensure(fits, f"{bound} is a bound of {values}; it must be a scalar or of the same shape.")
    return [values.shape]


@operator("T, T, T -> T", _clip_shapes, T=(*FLOATS, *COMPLEX, *SIGNED, TensorType.UINT8, TensorType.UINT16))
@writing
def CLIPBYVALUE(values: Array, low: Array, high: Array, output: Array) -> None:
    np.minimum(values, high, out=output)
    np.maximum(output, low, out=output)


@operator("SrcT -> DstT", same_shape, widened={}, SrcT=EVERY, DstT=EVERY)
def CAST(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Convert values: floats truncate towards zero, complex numbers keep the real part, non-zero is true."""
    [source], [output] = inputs, outputs
    truncated = attributes.flag("Truncate", default=False)
    short = output.dtype.itemsize == 2 and output.dtype.kind not in "iu"
    if output.dtype == np.bool_:
        return lambda: np.not_equal(source, np.zeros((), source.dtype), output)
    if source.dtype.kind == "c" and output.dtype.kind != "c":
        source = source.real
    if not short or source.dtype.itemsize < 4:
        return lambda: np.copyto(output, source, "unsafe")
    # By way of single precision, as Eigen converts.
    single = np.empty(source.shape, np.float32)
    dropped = 13 if output.dtype == np.float16 else 16

    def run() -> None:
        np.copyto(single, source, "unsafe")
        if truncated:
            bits = single.view(np.uint32)
            bits &= np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
        np.copyto(output, single, "unsafe")

    return run
