"""BATCH_MATMUL: the product of stacks of matrices; the dimensions before the last two broadcast.

Float, quantized (int8 or int16 results, or the plain int32 sums) and hybrid (float times matrices of 8, 4 or 2 bits; each left row
is quantized by itself while the model runs).

Numerics: tflite/kernels/batch_matmul.cc, tflite/kernels/internal/reference/batch_matmul.h
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import ensure_scale, quantized_range
from oplet.kernels.operands import ensure_operands
from oplet.kernels.requantization import Rounding
from oplet.schema.options import BatchMatMulOptions
from oplet_builtin_ops.arithmetic.requantize import Requantizer
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers.blocks import block_size, ensure_blocks, from_blocks, given_scales
from oplet_builtin_ops.layers.hybrid import quantize_asymmetric, quantize_symmetric, quantize_to_even
from oplet_builtin_ops.layers.matrix_product import MatrixProduct, plan_product
from oplet_builtin_ops.layers.program import Call, lane_count, run_calls, run_lanes
from oplet_builtin_ops.layers.quantized_layer import ensure_symmetric, exact_type
from oplet_builtin_ops.layers.rows import even_slices
from oplet_builtin_ops.layers.xnnpack_claims import follows_claim, remark

_FLOAT32, _INT8, _INT16, _INT32 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32

#: The types of weights for float activations; LiteRT supports the first one.
_WEIGHTS = (_INT8, TensorType.INT4, TensorType.INT2)
#: The output types by the types of the two inputs.
_COMBINATIONS = {
    (_FLOAT32, _FLOAT32): (_FLOAT32,),
    **dict.fromkeys(((_FLOAT32, weights) for weights in _WEIGHTS), (_FLOAT32,)),
    (_INT8, _INT8): (_INT8, _INT32),
    (_INT16, _INT16): (_INT16,),
    (_INT16, _INT8): (_INT16,),
}

#: About the seconds of a multiply-add.
_PRODUCT = 2e-11

#: About the values of a block of rows that is scaled at a time, so that the passes stay in the cache.
_BLOCK = 32768


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    left, right = node.inputs
    output = node.outputs[0]
    ensure((left.type, right.type) in _COMBINATIONS, f"BATCH_MATMUL does not multiply {left.type.name} with {right.type.name}.")
    ensure_type(output, *_COMBINATIONS[left.type, right.type])
    for tensor in (left, right):
        if not 2 <= tensor.ndim <= 6:
            ensure(False, f"{tensor} must have 2 to 6 dimensions.")
    options = node.options(BatchMatMulOptions)
    product = plan_product(left, right, options.adj_x, options.adj_y)
    context.resize_tensor(output, product.shape)
    node.prepared = product
    if left.type == _FLOAT32:
        if right.type in _WEIGHTS:
            _prepare_hybrid(context, node, product)
        return
    if left.type == _INT16:
        ensure_symmetric(left, right, output)
    if output.type != _INT32:
        for tensor in (left, output, *([] if right.per_channel else [right])):
            ensure_scale(tensor)
        node.prepared = product = replace(product, requantizer=_requantizer(node, product))
    compute = exact_type(_bound(node, product))
    for tensor in (left, right):
        if not tensor.is_constant:
            context.add_temporary(node, tensor.shape, compute)
    context.add_temporary(node, output.shape, compute)
    context.add_temporary(node, (max(_BLOCK, product.columns),), TensorType.FLOAT64)


def bind(context: Context, node: Node) -> Thunk:
    product: MatrixProduct = node.prepared
    left, right = node.inputs
    output = node.outputs[0]
    if left.type != _FLOAT32:
        return _bind_quantized(node, product)
    if right.type in _WEIGHTS:
        return _bind_hybrid(context, node, product)
    # A single right matrix is one call; several calls are divided between threads, matrix by matrix.
    lanes = 1 if product.single else lane_count(context, output.size * product.depth * _PRODUCT)
    x, y, z = left.data, right.data, output.data
    if lanes == 1 or left.ndim != z.ndim or right.ndim != z.ndim or not left.shape[0] == right.shape[0] == len(z) > 1:
        return run_calls(product.calls(x, y, z))
    slices = even_slices(len(z), -(-len(z) // lanes))
    return run_calls(run_lanes(context, [partial(product.calls, x[part], y[part], z[part]) for part in slices]))


def _zero_points(node: Node) -> tuple[int, int]:
    """Return the two inputs' zero points; zeros if the output is raw int32 sums."""
    if node.outputs[0].type == _INT32:
        return 0, 0
    return node.inputs[0].zero_point, node.inputs[1].zero_point


def _bound(node: Node, product: MatrixProduct) -> float:
    """Return an upper bound of the magnitude of the integer sums."""
    widest = 1
    for tensor, zero_point in zip(node.inputs, _zero_points(node)):
        low, high = quantized_range(tensor.type)
        widest *= max(high - zero_point, zero_point - low)
    return float(widest * product.depth)


def _column_scales(right: Tensor, columns: int) -> Array:
    scales = np.empty(0, np.float32) if right.quantization is None else right.quantization.scales
    ensure(
        len(scales) in (1, columns),
        f"{right} has {len(scales)} scales; it must have 1, or {columns}, one for each column of the product.",
    )
    return np.asarray(scales, np.float32)


def _operand(node: Node, position: int, target: Tensor | None, dtype: np.dtype) -> tuple[Array, list[Call]]:
    """Return an integer input as floats minus its zero point, and the numpy calls that convert it in each run (none if constant)."""
    tensor, zero_point = node.inputs[position], dtype.type(_zero_points(node)[position])
    if target is None:
        key = "operand", position, dtype, zero_point
        return node.cached(key, [tensor], lambda: tensor.data.astype(dtype) - zero_point, shared=True), []
    return target.data, [(partial(np.subtract, dtype=dtype), (tensor.data, zero_point, target.data))]


def _requantizer(node: Node, product: MatrixProduct) -> Requantizer:
    """Return the requantizer of an integer product whose output is quantized."""
    left, right = node.inputs
    columns, output = product.columns, node.outputs[0]
    with np.errstate(all="ignore"):  # with scales of 0, NaN counts as 0
        # The product in single precision, as in LiteRT.
        scales = (np.float32(left.scale) * _column_scales(right, columns)).astype(np.float64) / output.scale
    return Requantizer(
        np.broadcast_to(scales, (columns,)),
        np.zeros(columns, np.int64),
        _bound(node, product),
        output.zero_point,
        *quantized_range(output.type),
        Rounding.WIDE if left.type == _INT16 else Rounding.DOUBLE,
    )


def _bind_quantized(node: Node, product: MatrixProduct) -> Thunk:
    left, right = node.inputs
    output = node.outputs[0]
    *operands, sums, scratch = node.temporaries
    dtype = sums.dtype
    first, program = _operand(node, 0, None if left.is_constant else operands.pop(0), dtype)
    second, calls = _operand(node, 1, None if right.is_constant else operands.pop(0), dtype)
    program += calls + product.calls(first, second, sums.data)
    if product.requantizer is None:
        return run_calls([*program, (partial(np.copyto, casting="unsafe"), (output.data, sums.data))])
    columns, requantizer = product.columns, product.requantizer
    rows, results = sums.data.reshape(-1, columns or 1), output.data.reshape(-1, columns or 1)
    step = max(1, _BLOCK // max(columns, 1))
    for start in range(0, len(rows), step):
        block, target = rows[start : start + step], results[start : start + step]
        program += requantizer.calls(block, target, scratch.data)
    return run_calls(program)


def _prepare_hybrid(context: Context, node: Node, product: MatrixProduct) -> None:
    left, right = node.inputs
    if block_size(right):
        ensure_blocks(right)
    else:
        _column_scales(right, product.columns)
    rows = left.size // max(1, product.depth), product.depth
    for _ in ("values", "quantized", "spare"):
        context.add_temporary(node, rows, _FLOAT32)
    if not right.is_constant:
        context.add_temporary(node, right.shape, _FLOAT32)


def _bind_hybrid(context: Context, node: Node, product: MatrixProduct) -> Thunk:
    left, right = node.inputs
    output = node.outputs[0].data
    values, quantized, spare, *arriving = (temporary.data for temporary in node.temporaries)
    options = node.options(BatchMatMulOptions)
    program: list[Call] = []
    source = left.data
    if options.adj_x:
        source = values.reshape(*left.shape[:-2], left.shape[-1], left.shape[-2])
        program.append((np.copyto, (source, left.data.swapaxes(-1, -2))))
    quantize = quantize_asymmetric if options.asymmetric_quantize_inputs else quantize_symmetric
    if follows_claim(context, node):
        quantize = quantize_to_even
    scales = np.empty(len(quantized), np.float32)
    if source.size:
        program.append((quantize, (source.reshape(quantized.shape), quantized, scales, spare)))
    size = block_size(right)
    # Blockwise scales are applied to the matrices.
    columns = np.ones(1, np.float32) if size else _column_scales(right, product.columns)
    if len(columns) == 1:
        program.append((np.multiply, (scales, columns, scales)))
    if size:
        factors = given_scales(right)
        matrices = node.cached("scaled", [right], lambda: from_blocks(right.data, factors, size), shared=True)
    elif arriving:
        matrices = arriving[0]
        program.append((np.copyto, (matrices, right.data)))
    else:
        matrices = node.cached("matrices", [right], lambda: right.data.astype(np.float32), shared=True)
    program += replace(product, adj_x=False).calls(quantized.reshape(source.shape), matrices, output)
    program.append((np.multiply, (output, scales.reshape(*source.shape[:-1], 1), output)))
    if len(columns) > 1:
        program.append((np.multiply, (output, columns, output)))
    return run_calls(program)


REGISTRATION = takes_halves(
    Registration(
        prepare=prepare,
        bind=bind,
        pure=True,
        types=(_FLOAT32, _INT8, _INT16),
        remark=remark,
        differences="hybrid products with several batch dimensions, and int8 or int16 ones with a scale per column, are right here; LiteRT takes scales of other rows, or none",
    )
)
