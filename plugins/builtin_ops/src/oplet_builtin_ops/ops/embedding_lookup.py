"""EMBEDDING_LOOKUP: rows of a table, by index; rows of a quantized table are dequantized if the output is float.

Numerics: tflite/kernels/embedding_lookup.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.layers.blocks import block_size, ensure_blocks
from oplet_builtin_ops.operands import all_types_but

_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2)
_FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16)
#: The values of a packed type per byte.
_PER_BYTE = {TensorType.INT4: 2, TensorType.INT2: 4}
_TYPES = all_types_but(TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    (rows, table), output = node.inputs, node.outputs[0]
    ensure_type(rows, TensorType.INT32)
    ensure(rows.ndim == 1, f"the row numbers {rows} must have 1 dimension.")
    ensure(table.ndim >= 2, f"the table {table} must have at least 2 dimensions.")
    ensure(table.type in _TYPES, f"{table} cannot be looked up in.")
    if block_size(table):
        _check_blocks(table, output)
    elif table.type == output.type or output.type not in _FLOATS:
        ensure(table.type == output.type, f"rows of the table {table} cannot become {output.type.name}.")
        ensure(
            table.quantization is None or not table.quantization.per_channel,
            f"{table} has a scale for each row; {output} does not.",
        )
    else:
        ensure_type(table, *_QUANTIZED)
        _check_scales(table, output)
    context.resize_tensor(output, (rows.size, *table.shape[1:]))


def _check_blocks(table: Tensor, output: Tensor) -> None:
    ensure_type(table, TensorType.INT8, TensorType.INT4, TensorType.INT2)
    ensure_type(output, *_FLOATS)
    ensure(table.ndim == 2, f"a table quantized by blocks must have 2 dimensions: {table}.")
    ensure(table.shape[1] % block_size(table) == 0, f"rows of {table} cannot be cut into blocks of {block_size(table)}.")
    ensure_blocks(table)


def _check_scales(table: Tensor, output: Tensor) -> None:
    quantization = table.quantization
    if quantization is None or not len(quantization.scales):
        return  # without scales all values are 0, as in LiteRT
    first = table.zero_point
    ensure(first == 0 or output.type != TensorType.FLOAT32, f"{table} has zero point {first}; it must have none.")
    if quantization.per_channel:
        ensure(
            quantization.quantized_dimension == 0,
            f"{table} has scales along dimension {quantization.quantized_dimension}, not 0.",
        )
        count, points = len(quantization.scales), len(quantization.zero_points)
        ensure(count == table.shape[0], f"{table} has {count} scales, not one for each row.")
        ensure(points in (1, count), f"{table} has {points} zero points for {count} scales.")


def bind(context: Context, node: Node) -> Thunk:
    rows, table = node.inputs
    output, numbers = node.outputs[0].data, rows.data
    count = table.shape[0]

    def check() -> None:
        if numbers.size:
            ensure_row(table, int(numbers.min()))
            ensure_row(table, int(numbers.max()))

    if is_plain(node):

        def copy() -> None:
            if count:
                check()
                table.data.take(numbers, 0, output, "clip")

        return copy
    factors = row_scales(table)

    def dequantize() -> None:
        check()
        picked = _pick(table, numbers)
        scale = factors[numbers] if len(factors) > 1 else factors
        if not output.size:
            return
        # One scale per row, or per block of a row.
        blocks = picked.reshape(len(numbers), scale.shape[1], -1)
        output[...] = (blocks * scale[..., None]).reshape(output.shape)

    return dequantize


def is_plain(node: Node) -> bool:
    """Return whether an EMBEDDING_LOOKUP copies rows as they are in the table, without dequantizing."""
    table = node.inputs[1]
    return bool(table.type == node.outputs[0].type and not block_size(table))


def ensure_row(table: Tensor, number: int) -> None:
    """Check that a table has the row of this number.

    Raises:
        EnsureError: the table has no such row.
    """
    ensure(number >= 0, lambda: f"row {number} of {table} is asked for; rows are numbered from 0.")
    ensure(number < table.shape[0], lambda: f"row {number} of {table} is asked for, which has {table.shape[0]}.")


def row_scales(table: Tensor) -> Array:
    """Return the table's scales, float32, of shape (rows, 1), (rows, blocks of a row), or (1, 1) for one scale; 0 if it has none."""
    quantization = table.quantization
    if quantization is None or not len(quantization.scales):
        return np.zeros((1, 1), np.float32)
    rows = table.shape[0] if quantization.block_size else len(quantization.scales)
    return np.ascontiguousarray(quantization.scales, np.float32).reshape(rows, -1)


def _pick(table: Tensor, numbers: Array) -> Array:
    """Return the selected rows as float32 without scales, shape (rows, values)."""
    values = table.data.view(np.int8) if table.type == TensorType.UINT8 else table.data
    columns = int(np.prod(table.shape[1:]))
    packed = _PER_BYTE.get(table.type, 1)
    if columns % packed == 0:
        return np.asarray(values.reshape(table.shape[0], columns)[numbers].astype(np.float32))
    # LiteRT reads from the byte in which a row begins, which may also have the end of the row before.
    starts = numbers.astype(np.int64) * columns // packed * packed
    return np.asarray(values.reshape(-1)[starts[:, None] + np.arange(columns)].astype(np.float32))


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
