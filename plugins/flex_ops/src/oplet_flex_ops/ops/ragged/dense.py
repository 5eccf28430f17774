"""RaggedTensorToTensor and RaggedTensorToSparse: ragged tensors padded to dense ones, or as sparse tensors.

Numerics: tensorflow/core/kernels/{ragged_tensor_to_tensor_op.cc,ragged_tensor_to_sparse_kernel.cc}
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import TensorType, ensure
from oplet.kernels.arrays import Array
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import computed, reserve
from oplet_flex_ops.ops.ragged.ranges import ensure_splits, row_numbers_of

_KINDS = (b"FIRST_DIM_SIZE", b"VALUE_ROWIDS", b"ROW_SPLITS")


def _partitions(attributes: Attributes) -> list[bytes]:
    kinds: Any = attributes.node_def.attributes.get("row_partition_types")
    ensure(
        isinstance(kinds, list) and all(kind in _KINDS for kind in kinds),
        f"the attribute 'row_partition_types' is {kinds!r:.60}; it must list FIRST_DIM_SIZE, VALUE_ROWIDS or ROW_SPLITS.",
    )
    found = list(kinds)
    count = attributes.integer("num_row_partition_tensors", least=1)
    ensure(len(found) == count, f"there are {len(found)} row_partition_types for {count} tensors.")
    ensure(b"FIRST_DIM_SIZE" not in found[1:], "FIRST_DIM_SIZE stands behind the first of the row_partition_types.")
    ensure(found[0] != b"VALUE_ROWIDS", "the row_partition_types begin with VALUE_ROWIDS, which lacks the number of rows.")
    return found


def _rows(kinds: Sequence[bytes], tensors: Sequence[Array], count: int) -> tuple[int, list[NDArray[np.int64]]]:
    """Decode row partitions: return the number of rows, and for each level the parent row of each row or value.

    Raises:
        EnsureError: the partitions do not fit each other or the number of values.
    """
    if kinds[0] == b"FIRST_DIM_SIZE":
        ensure(tensors[0].size == 1, f"the first row partition must be one size, not {tensors[0].size} numbers.")
        first, rest = int(tensors[0].reshape(-1)[0]), list(zip(kinds, tensors))[1:]
    else:
        first, rest = tensors[0].size - 1, list(zip(kinds, tensors))
    ensure(first >= 0 and rest, "the row partitions say nothing of the rows.")
    reserve((first,), 32)
    levels: list[NDArray[np.int64]] = []
    above = first
    for number, (kind, tensor) in enumerate(rest):
        ensure(tensor.ndim == 1, f"row partition {number} must be a vector.")
        if kind == b"ROW_SPLITS":
            ensure(tensor.size == above + 1, f"row partition {number} has {tensor.size} splits for {above} rows.")
            below = int(tensor[-1])
            ensure(0 <= below <= _below(rest, number, count), f"row partition {number} ends at {below}, beyond the rows below.")
            ensure_splits([tensor], below)
            levels.append(row_numbers_of(tensor))
        else:
            whole = tensor.astype(np.int64)
            ensure(
                not whole.size or (whole[0] >= 0 and whole[-1] < above and bool((whole[1:] >= whole[:-1]).all())),
                f"the row numbers of partition {number} do not ascend within 0 to {above - 1}.",
            )
            levels.append(whole)
        above = levels[-1].size
    ensure(above == count, f"the row partitions divide {above} values, but there are {count}.")
    return first, levels


def _below(rest: Sequence[tuple[bytes, Array]], number: int, count: int) -> int:
    """Return the most rows or values that partition `number` may have: as the next partition says, or `count` values."""
    if number + 1 == len(rest):
        return count
    kind, tensor = rest[number + 1]
    return tensor.size - 1 if kind == b"ROW_SPLITS" else count


def _columns(rows: NDArray[np.int64], above: int) -> NDArray[np.int64]:
    """Return each value's column within its row; `rows` has each value's row, ascending, and `above` is the number of rows."""
    starts = np.searchsorted(rows, np.arange(above))
    return np.arange(rows.size) - starts[rows]


@computed(
    "RaggedTensorToTensor",
    "shape: Tshape, values: T, default_value: T, row_partition_tensors: num_row_partition_tensors*Tindex -> result: T",
    _partitions,
    Tshape=(TensorType.INT64, TensorType.INT32),
    Tindex=(TensorType.INT64, TensorType.INT32),
)
def RAGGEDTENSORTOTENSOR(kinds: list[bytes], shape: Array, values: Array, default: Array, *tensors: Array) -> Array:
    first, levels = _rows(kinds, tensors, len(values) if values.ndim else 0)
    ensure(values.ndim >= 1, "the values must have at least one dimension.")
    ensure(shape.ndim <= 1, "the shape must be a vector, or the scalar -1.")
    columns = [_columns(rows, above) for rows, above in zip(levels, [first, *(rows.size for rows in levels)])]
    natural = [first, *(int(column.max()) + 1 if column.size else 0 for column in columns), *values.shape[1:]]
    wanted = shape.tolist() if shape.ndim else [-1] * len(natural)
    ensure(shape.ndim == 1 or int(shape) == -1, "a scalar shape must be -1.")
    ensure(
        len(wanted) == len(natural) and all(size >= -1 for size in wanted),
        f"the shape {wanted!r:.60} does not fit {len(natural)} axes.",
    )
    inner = values.shape[1:]
    ensure(
        all(a in (-1, b) for a, b in zip(wanted[len(wanted) - len(inner) :], inner)),
        f"the shape {wanted} does not end with {list(inner)}, the axes of each value.",
    )
    sizes = [natural[axis] if size == -1 else size for axis, size in enumerate(wanted)]
    ensure(default.ndim <= len(inner), f"the default value has more axes than the values, {default.ndim} against {len(inner)}.")
    reserve(sizes, 2 * values.itemsize)
    output = np.empty(sizes, values.dtype)
    try:
        output[...] = np.broadcast_to(default, inner)
    except ValueError:
        ensure(False, f"a default value of shape {list(default.shape)} cannot be broadcast to {list(inner)}.")
    outer = sizes[: len(levels) + 1]
    places = np.where(np.arange(first) < outer[0], np.arange(first), -1)
    for rows, column, size in zip(levels, columns, outer[1:]):
        above = places[rows]
        places = np.where((above >= 0) & (column < size), above * size + column, -1)
    kept = places >= 0
    output.reshape(prod(outer), *inner)[places[kept]] = values[kept]
    return output


@computed(
    "RaggedTensorToSparse",
    "rt_nested_splits: RAGGED_RANK*Tsplits[1], rt_dense_values: T "
    "-> sparse_indices: INT64, sparse_values: T, sparse_dense_shape: INT64",
    lambda attributes: attributes.integer("RAGGED_RANK", least=1, most=255),
    Tsplits=(TensorType.INT64, TensorType.INT32),
)
def RAGGEDTENSORTOSPARSE(levels: int, *operands: Array) -> list[Array]:
    splits, values = operands[:levels], operands[levels]
    ensure(values.ndim >= 1, "the values must have at least one dimension.")
    ensure_splits(splits, len(values))
    first = splits[0].size - 1
    reserve((values.size, levels + values.ndim), 16)
    vectors: Any = np.arange(first)[:, None]
    sizes = [first]
    for level in splits:
        rows = row_numbers_of(level)
        columns = np.arange(rows.size) - level[rows]
        vectors = np.concatenate([vectors[rows], columns[:, None]], 1)
        sizes.append(int(np.diff(level).max(initial=0)))
    inner = np.indices(values.shape[1:]).reshape(values.ndim - 1, prod(values.shape[1:])).T
    whole = np.concatenate([np.repeat(vectors, len(inner), 0), np.tile(inner, (len(values), 1))], 1)
    return [whole, values.reshape(-1), np.array([*sizes, *values.shape[1:]], np.int64)]
