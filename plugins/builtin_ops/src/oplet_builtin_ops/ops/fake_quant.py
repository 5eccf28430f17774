"""FAKE_QUANT: floats rounded to the values that `num_bits` bits between a minimum and a maximum represent.

Numerics: tflite/kernels/fake_quant.cc, internal/quantization_util.cc (NudgeQuantizationRange, FakeQuantizeArray)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Thunk
from oplet.schema.options import FakeQuantOptions
from oplet_builtin_ops.elementwise.elementwise import prepare_elementwise

#: The largest float below 0.5: adding it before truncation rounds halves up; 0.5 itself would round 0.49999997 up to 1.
_HALF = np.nextafter(np.float32(0.5), np.float32(0))


class Range(NamedTuple):
    """The quantization range, nudged so that 0 is exactly representable."""

    low: np.float32
    high: np.float32
    step: np.float32


def _nudged(low: np.float32, high: np.float32, bits: int) -> Range:
    steps = np.float32((1 << bits) - 1)
    step = (high - low) / steps
    zero_point = np.float32(0) - low / step
    nearest = np.clip(np.floor(zero_point + _HALF), np.float32(0), steps)
    return Range(-nearest * step, (steps - nearest) * step, step)


def prepare(context: Context, node: Node) -> None:
    prepare_elementwise(context, node, TensorType.FLOAT32, derive=True)
    options = node.options(FakeQuantOptions)
    ensure(not options.narrow_range, "narrow_range is true; it is meant for weights and not supported at run time.")
    ensure(1 <= options.num_bits <= 16, f"num_bits is {options.num_bits}; it must be 1 to 16.")
    ensure(options.min < options.max, f"the range from {options.min:g} to {options.max:g} is empty.")
    node.prepared = _nudged(np.float32(options.min), np.float32(options.max), options.num_bits)


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    low, high, step = (np.array(value) for value in node.prepared)
    per_step, half = np.array(np.float32(1) / step), np.array(_HALF)

    def run() -> None:
        np.fmax(source, low, out=output)  # NaN becomes the lowest value
        np.minimum(output, high, out=output)
        np.subtract(output, low, output)
        np.multiply(output, per_step, output)
        np.add(output, half, output)
        np.floor(output, output)
        np.multiply(output, step, output)
        np.add(output, low, output)

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="refuses other types, whose bytes LiteRT reads as floats",
)
