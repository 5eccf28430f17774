"""SOFTMAX along the last dimension: exp(beta * x) / sum(exp(beta * x)).

Numerics: tflite/kernels/activations.cc (SoftmaxPrepare), internal/reference/softmax.h
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import SoftmaxOptions

if TYPE_CHECKING:
    from oplet_builtin_ops.arithmetic.quantized_softmax import Softmax8, Softmax16
    from oplet_builtin_ops.arithmetic.tabled_softmax import TabledSoftmax

#: About the seconds of a value.
_VALUE: Final = 1e-9

#: The output types by input type.
TARGETS: Final = {
    TensorType.FLOAT32: (TensorType.FLOAT32,),
    TensorType.FLOAT16: (TensorType.FLOAT16,),
    TensorType.INT8: (TensorType.INT8, TensorType.INT16),
    TensorType.UINT8: (TensorType.UINT8, TensorType.INT16),
    TensorType.INT16: (TensorType.INT16,),
}


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *TARGETS)
    ensure_type(output, *TARGETS[source.type])
    ensure(source.ndim >= 1, lambda: f"{source} must have a dimension at least.")
    context.resize_tensor(output, source.shape)
    beta = node.options(SoftmaxOptions).beta
    rows = source.shape[:-1] + (1,)
    if source.type in (TensorType.FLOAT32, TensorType.FLOAT16):
        node.in_place = [source]
        context.add_temporary(node, rows, TensorType.FLOAT32)
        if source.type == TensorType.FLOAT16:
            context.add_temporary(node, source.shape, TensorType.FLOAT32)
        return
    from oplet_builtin_ops.arithmetic.quantization import ensure_quantized  # here, as those of floats have no tables

    ensure_quantized(source, output)
    if output.type == source.type == TensorType.INT8:
        _ensure_output(node, -128, 256)
    elif source.type == TensorType.INT16:
        from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero

        ensure_zero_point_is_zero(source)
        _ensure_output(node, 0, 32768)
    node.prepared = node.cached(("tables", source.type, output.type), (), lambda: _tables(source, output, beta))
    context.add_temporary(node, rows, source.type)
    context.add_temporary(node, source.shape, TensorType.UINT16 if source.type == TensorType.INT16 else TensorType.UINT8)
    context.add_temporary(node, source.shape, TensorType.INT64)
    context.add_temporary(node, source.shape, TensorType.INT64)


def _tables(source: Tensor, output: Tensor, beta: float) -> Softmax8 | Softmax16 | TabledSoftmax:
    from oplet_builtin_ops.arithmetic.quantized_softmax import Softmax8, Softmax16, fits_fixed_point

    if source.type == TensorType.INT16:
        return Softmax16(source, beta)
    steps = 256 if output.type == TensorType.UINT8 else 65536
    # The reference kernels take every output for one whose scale spans its type; the others look at its scale.
    spans = output.type == TensorType.INT8 or (
        math.isclose(output.scale, 1 / steps, rel_tol=1e-6) and (steps == 256 or output.zero_point == -32768)
    )
    if spans and fits_fixed_point(source, beta):
        return Softmax8(source, beta)
    from oplet_builtin_ops.arithmetic.tabled_softmax import TabledSoftmax

    return TabledSoftmax(source, output, beta)


def _ensure_output(node: Node, zero_point: int, steps: int) -> None:
    output = node.outputs[0]
    ensure(output.zero_point == zero_point, f"{output} has zero point {output.zero_point}; SOFTMAX gives {zero_point}.")
    ensure(math.isclose(output.scale, 1 / steps, rel_tol=1e-3), f"{output} has scale {output.scale:g}; SOFTMAX gives 1/{steps}.")


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0], node.outputs[0]
    temporaries = [temporary.data for temporary in node.temporaries]
    if not output.size:
        return lambda: None
    if source.type not in (TensorType.FLOAT32, TensorType.FLOAT16):
        thunk: Thunk = node.prepared.bind(source.data, output.data, *temporaries)
        return thunk
    beta = node.options(SoftmaxOptions).beta
    if source.type == TensorType.FLOAT16:
        return _bind_half(source.data, output.data, beta, *temporaries)
    from oplet_builtin_ops.layers.program import lane_count, run_calls, run_lanes  # here, as compiled kernels serve most
    from oplet_builtin_ops.layers.rows import even_slices

    lanes = lane_count(context, output.size * _VALUE)
    if lanes == 1:
        return _bind_float(source.data, output.data, beta, *temporaries)
    x, y, row = (array.reshape(-1, array.shape[-1]) for array in (source.data, output.data, *temporaries))
    parts = even_slices(len(x), -(-len(x) // lanes))
    return run_calls(run_lanes(context, [[(_bind_float(x[part], y[part], beta, row[part]), ())].copy for part in parts]))


def _bind_float(x: Array, y: Array, beta: float, row: Array) -> Thunk:
    from oplet_builtin_ops.shaping.row_folds import fold_rows

    factor, scales = np.array(beta, np.float32), beta != 1
    find_largest, add_up = fold_rows(np.maximum, x, row), fold_rows(np.add, y, row)

    def run() -> None:
        find_largest()
        np.subtract(x, row, y)
        if scales:
            np.multiply(y, factor, y)
        np.exp(y, y)
        add_up()
        np.divide(y, row, y)

    return run


def _bind_half(x: Array, y: Array, beta: float, row: Array, work: Array) -> Thunk:
    """Return the function for float16, computed in float32: exponentials are rounded to float16 before division, not before
    summing.
    """
    factor = np.array(beta, np.float32)

    def run() -> None:
        work[...] = x
        np.maximum.reduce(work, -1, out=row, keepdims=True)
        np.subtract(work, row, work)
        np.multiply(work, factor, work)
        np.exp(work, work)
        np.add.reduce(work, -1, out=row, keepdims=True)
        y[...] = work
        work[...] = y
        np.divide(work, row, work)
        y[...] = work

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=tuple(TARGETS),
    differences="8-bit rows whose exponentials sum up to more than 512 get an answer, where LiteRT's reference kernel aborts the process",
)
