"""LOG_SOFTMAX along the last dimension: x - log(sum(exp(x))).

Numerics: tflite/kernels/activations.cc (LogSoftmaxPrepare), internal/reference/log_softmax.h, integer_ops/log_softmax.h
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure
from oplet.kernels.arrays import Thunk
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.quantized_softmax import LogSoftmax8, fits_fixed_point
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.arithmetic.tabled_softmax import TabledLogSoftmax
from oplet_builtin_ops.elementwise.elementwise import prepare_elementwise
from oplet_builtin_ops.shaping.row_folds import fold_rows

TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8)


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


def _tables(source: Tensor, output: Tensor) -> LogSoftmax8 | TabledLogSoftmax:
    return LogSoftmax8(source) if fits_fixed_point(source, 1.0) else TabledLogSoftmax(source, output, 1.0)


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    temporaries = [temporary.data for temporary in node.temporaries]
    if not output.ndim:  # a row of one value
        source, output, *temporaries = (array.reshape(1) for array in (source, output, *temporaries))
    if not output.size:
        return lambda: None
    if node.inputs[0].type != TensorType.FLOAT32:
        tables: LogSoftmax8 | TabledLogSoftmax = node.prepared
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
