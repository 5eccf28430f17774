"""LOG_SOFTMAX along the last dimension: x - log(sum(exp(x))).

Numerics: tflite/kernels/activations.cc (LogSoftmaxPrepare), internal/reference/log_softmax.h, integer_ops/log_softmax.h
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import multiply_by_quantized_multiplier
from oplet_builtin_ops.arithmetic.fixed_point_functions import logarithm
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.quantized_softmax import Softmax8, distance_scaling, fits_fixed_point
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.arithmetic.tabled_softmax import TabledLogSoftmax
from oplet_builtin_ops.elementwise.elementwise import prepare_elementwise
from oplet_builtin_ops.shaping.row_folds import fold_rows

TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8)
#: The output's scale, 1/16, in the fixed point of a distance from the largest value, as a power of two.
_STEP_BITS = 31 - 5 - 4
#: A distance in that fixed point that no output shows; after a logarithm is subtracted it is still within int32.
_LEAST = -20 << 4 + _STEP_BITS
#: Sums have 12 integer bits. Sums above 4096, for which as many values must be near the largest one, count as 4096; LiteRT's
#: overflow.
_LARGEST = np.int64((1 << 31) - 1)


class Quantized:
    """The tables of a node.

    Attributes:
        summands: the summand of each possible distance from a row's largest value.
        distances: the scaled distances, negative; those that no output shows are clamped.
    """

    def __init__(self, source: Tensor) -> None:
        self.summands = Softmax8(source, 1.0).summands.astype(np.int32)
        multiplier, shift, farthest = distance_scaling(source, 1.0)
        distances = np.arange(256, dtype=np.int32)
        scaled = multiply_by_quantized_multiplier(-distances, multiplier, shift)
        self.distances = np.maximum(np.where(distances <= farthest, scaled, _LEAST), _LEAST).astype(np.int32)

    def bind(self, x: Array, y: Array, largest: Array, below: Array, steps: Array, places: Array) -> Thunk:
        """A thunk; `largest` has one element per row, the other arrays are scratch of the input's shape."""
        octets, top = x.view(np.uint8), largest.view(np.uint8)
        info = np.iinfo(y.dtype)
        lowest, highest, bits = (np.array(value, np.int32) for value in (info.min, info.max, _STEP_BITS))
        half = (1 << _STEP_BITS - 1) - 1
        totals = np.empty(largest.shape, np.int64)
        find_largest, add_up = fold_rows(np.maximum, x, largest), fold_rows(np.add, steps, totals)

        def run() -> None:
            find_largest()
            # The difference of the bits is that of the values, whether they are signed or not.
            np.subtract(top, octets, below)
            # `take` copies indices of any type but int64.
            np.copyto(places, below)
            self.summands.take(places, None, steps, "clip")
            add_up()
            np.minimum(totals, _LARGEST, out=totals)
            logarithms = logarithm(totals)
            self.distances.take(places, None, steps, "clip")
            # Never above zero, so that this rounds halves away from zero.
            np.subtract(steps, (logarithms - half).astype(np.int32), steps)
            np.right_shift(steps, bits, steps)
            np.add(steps, highest, steps)
            np.maximum(steps, lowest, out=steps)
            y[...] = steps

        return run


def prepare(context: Context, node: Node) -> None:
    source, output = prepare_elementwise(context, node, *TYPES)
    if source.type == TensorType.FLOAT32:
        context.add_temporary(node, source.shape)
        context.add_temporary(node, (*source.shape[:-1], 1))
        return
    ensure_quantized(source, output)
    zero_point = 127 if source.type == TensorType.INT8 else 255
    ensure(
        output.scale == 1 / 16 and output.zero_point == zero_point,
        f"{output} has scale {output.scale:g} and zero point {output.zero_point}; LOG_SOFTMAX gives 1/16 and {zero_point}.",
    )
    node.prepared = node.cached(("tables", source.type, output.type), (), lambda: _tables(source, output))
    context.add_temporary(node, (*source.shape[:-1], 1), source.type)
    context.add_temporary(node, source.shape, TensorType.UINT8)
    context.add_temporary(node, source.shape, TensorType.INT32)
    context.add_temporary(node, source.shape, TensorType.INT64)


def _tables(source: Tensor, output: Tensor) -> Quantized | TabledLogSoftmax:
    return Quantized(source) if fits_fixed_point(source, 1.0) else TabledLogSoftmax(source, output, 1.0)


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    temporaries = [temporary.data for temporary in node.temporaries]
    if not output.ndim:  # a row of one value
        source, output, *temporaries = (array.reshape(1) for array in (source, output, *temporaries))
    if not output.size:
        return lambda: None
    if node.inputs[0].type != TensorType.FLOAT32:
        tables: Quantized | TabledLogSoftmax = node.prepared
        return tables.bind(source, output, *temporaries)
    exponentials, row = temporaries
    find_largest, add_up = fold_rows(np.maximum, source, row), fold_rows(np.add, exponentials, row)

    def run() -> None:
        find_largest()
        np.subtract(source, row, output)
        np.exp(output, exponentials)
        add_up()
        np.log(row, row)
        np.subtract(output, row, output)

    return run


REGISTRATION = takes_halves(
    Registration(
        prepare=prepare,
        bind=bind,
        pure=True,
        types=TYPES,
        differences="8-bit sums beyond 4096, of as many values near the largest one, stay there; LiteRT's overflow",
    )
)
