"""RaggedGather, RaggedRange and RaggedTensorToTensor: rows of ragged tensors picked, made and written densely.

They are TensorFlow's ops, the first two of which no LiteRT has; TensorFlow Text's models need them.

RaggedGather. Inputs: the row splits of each ragged dimension, the outermost first, the values, and the indices of rows in a tensor of any
shape. Outputs: the row splits and the values of the picked rows; there are as many row splits as were given, and one more for
each dimension of the indices but the first.

RaggedRange. Inputs: starts, limits and steps of one type (int32, int64, float32, float64), each a vector or one value for all rows. Outputs: the
row splits, and the values of all rows. Values of floats are sums of steps, rounded at each.

RaggedTensorToTensor: short rows are padded and long ones cut. Inputs: the shape (-1 for dimensions that the rows decide, or the scalar -1 for all
of them), the values, the default value, and for each ragged dimension how it is divided into rows, as the option `row_partition_types` says: row
splits (ROW_SPLITS) or the row of each value (VALUE_ROWIDS), before which comes the number of rows (FIRST_DIM_SIZE). Where all rows are empty, a
dimension that the row splits decide has size 1, as in TensorFlow Text's kernel; TensorFlow itself gives it size 0. Default values of more than
one number, and other types, are as in TensorFlow.

Numerics: core/kernels/{ragged_gather_op,ragged_range_op}.cc of tensorflow, ragged_tensor_to_tensor_tflite.cc of tensorflow/text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, Tensor, TensorType, charge, ensure, ensure_type
from oplet.kernels.limits import listed, paced
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import give

Ints = NDArray[np.int64]

_TYPES = (TensorType.INT32, TensorType.INT64, TensorType.FLOAT32, TensorType.FLOAT64)


def prepare_gather(context: Context, node: Node) -> None:
    ensure(
        len(node.inputs) >= 3 and None not in node.inputs,
        lambda: f"it has {len(node.inputs)} inputs and takes row splits, values and numbers of rows.",
    )
    *splits, values, indices = node.inputs
    ensure_type(indices, TensorType.INT32, TensorType.INT64)
    for each in splits:
        ensure_type(each, TensorType.INT32, TensorType.INT64)
        ensure(each.ndim == 1, f"{each} must be a vector of row splits.")
    ensure(values.ndim >= 1, lambda: f"{values} must have at least one dimension.")
    wanted = len(splits) + indices.ndim - 1
    ensure(len(node.outputs) == wanted + 1, lambda: f"it has {len(node.outputs)} outputs and gives {wanted + 1}.")
    for output in node.outputs[:-1]:
        ensure_type(output, splits[0].type)
    ensure_same_type(values, node.outputs[-1])
    for output in node.outputs:
        context.set_dynamic(output)


def run_gather(context: Context, node: Node) -> None:
    *partitions, values, indices = node.inputs
    below = [tensor.size - 1 for tensor in partitions[1:]] + [values.shape[0]]
    splits = [_row_splits(tensor, count) for tensor, count in zip(partitions, below)]
    rows = len(splits[0]) - 1
    picked = indices.data.reshape(-1).astype(np.int64)
    wrong = np.flatnonzero((picked < 0) | (picked >= rows))
    ensure(not len(wrong), lambda: f"{indices} asks for row {picked[wrong[0]]} of {rows}.")
    made: list[Ints] = []
    for dimension in range(indices.ndim - 1):  # rows of the same length, by the shape of the numbers
        above, length = int(np.prod(indices.shape[: dimension + 1])), indices.shape[dimension + 1]
        made.append(np.arange(above + 1) * length)
    for each in splits:
        lengths = np.diff(each)[picked]
        ends = np.cumsum(lengths)
        made.append(np.concatenate(([0], ends)))
        total = int(ends[-1]) if len(ends) else 0
        charge(3 * 8 * total)
        picked = np.arange(total) + np.repeat(each[picked] - ends + lengths, lengths)
    # A scalar picks one row: its own splits around it are left out.
    for output, found in zip(node.outputs, made[len(made) - len(node.outputs) + 1 :]):
        give(context, output, found)
    give(context, node.outputs[-1], values.data[picked])


def _row_splits(tensor: Tensor, most: int) -> Ints:
    """Check and return row splits that never decrease and stay within `most`."""
    splits = tensor.data.astype(np.int64)
    ensure(
        len(splits) > 0 and splits[0] >= 0 and splits[-1] <= most and not (splits[1:] < splits[:-1]).any(),
        lambda: f"{tensor} must have row splits that never fall and lie within 0 and {most}, the number of what they part.",
    )
    return splits


GATHER = Registration(prepare=prepare_gather, invoke=run_gather, pure=True)


def prepare_range(context: Context, node: Node) -> None:
    ensure_operands(node, 3, 2)
    splits, values = node.outputs
    ensure_type(node.inputs[0], *_TYPES)
    for tensor in (*node.inputs[1:], values):
        ensure_same_type(node.inputs[0], tensor)
    ensure_type(splits, TensorType.INT32, TensorType.INT64)
    for tensor in node.inputs:
        ensure(tensor.ndim <= 1, f"{tensor} must be a vector or a scalar.")
    rows = {tensor.size for tensor in node.inputs if tensor.ndim == 1}
    ensure(len(rows) <= 1, lambda: f"starts, limits and steps have {sorted(rows)} values; all vectors must have as many.")
    for output in node.outputs:
        context.set_dynamic(output)


def run_range(context: Context, node: Node) -> None:
    starts, limits, steps = np.broadcast_arrays(*(np.atleast_1d(tensor.data) for tensor in node.inputs))
    ensure(bool((steps != 0).all()), "a step is 0; rows with it would never end.")
    counts = _counts(starts, limits, steps)
    total = int(counts.astype(object).sum()) if counts.size else 0
    splits = node.outputs[0]
    most = int(np.iinfo(splits.dtype).max)
    ensure(
        total <= most, lambda: f"its rows have {total} values, and its row splits are {splits.type.name}, which ends at {most}."
    )
    charge(3 * 8 * total)
    counts = counts.astype(np.int64)
    ends = np.cumsum(counts)
    if starts.dtype.kind == "f":
        values = np.empty(total, starts.dtype)
        for start, step, begin, end in paced(zip(starts, steps, listed(ends - counts), listed(ends)), 64):
            row = values[begin:end]
            row[:1], row[1:] = start, step
            np.add.accumulate(row, out=row)
    else:
        within = np.arange(total) - np.repeat(ends - counts, counts)
        first, step = (np.repeat(each, counts) for each in (starts, steps))
        values = (first + step * within.astype(starts.dtype)).astype(starts.dtype)
    give(context, splits, np.concatenate(([0], ends)))
    give(context, node.outputs[1], values)


def _counts(starts: NDArray[Any], limits: NDArray[Any], steps: NDArray[Any]) -> NDArray[Any]:
    """Return the number of values of each row."""
    none = ((steps > 0) & (limits < starts)) | ((steps < 0) & (limits > starts))
    if starts.dtype.kind == "f":
        ensure(
            all(bool(np.isfinite(each).all()) for each in (starts, limits, steps)),
            "a start, limit or step is infinite or no number; rows with it have no end.",
        )
        with np.errstate(over="ignore"):
            counts = np.ceil(np.abs((limits - starts) / steps))
        ensure(bool((counts < 2.0**62).all()), "a row has more than 2**62 values; use larger steps.")
        return np.where(none, 0, counts).astype(np.int64)
    # Differences of int64 need 65 bits; their amount fits into 64 without a sign.
    wide = [each.astype(np.int64).astype(np.uint64) for each in (starts, limits, steps)]
    way = np.where(limits >= starts, wide[1] - wide[0], wide[0] - wide[1])
    step = np.where(steps > 0, wide[2], np.uint64(0) - wide[2])
    counts = way // step + (way % step > 0)
    return np.where(none, np.uint64(0), counts).astype(np.uint64)


RANGE = Registration(prepare=prepare_range, invoke=run_range, pure=True, types=_TYPES)


class _Partition(NamedTuple):
    """Which values belong to which row: one level of a ragged tensor.

    Attributes:
        rows: the row of each value, ascending.
        places: the position of each value in its row.
        longest: the size that the rows give to their dimension.
    """

    rows: Ints
    places: Ints
    longest: int


def prepare_dense(context: Context, node: Node) -> None:
    kinds: Any = options_of(node).get("row_partition_types")
    ensure(
        isinstance(kinds, list)
        and len(kinds) > 0
        and (kinds[0] == "ROW_SPLITS" or kinds[:2] == ["FIRST_DIM_SIZE", "VALUE_ROWIDS"])
        and all(kind in ("ROW_SPLITS", "VALUE_ROWIDS") for kind in kinds[1:]),
        lambda: (
            f"the option 'row_partition_types' is {kinds!r:.80}; it must be a list of ROW_SPLITS and VALUE_ROWIDS, the latter with"
            " FIRST_DIM_SIZE in front."
        ),
    )
    count = len(kinds)
    ensure(
        len(node.inputs) == 3 + count and None not in node.inputs and len(node.outputs) == 1,
        lambda: (
            f"it has {len(node.inputs)} inputs and takes {3 + count}: a shape, values, a default value and {count} partitions."
        ),
    )
    shape, values, default, *partitions = node.inputs
    ensure_type(shape, TensorType.INT32, TensorType.INT64)
    ensure(shape.ndim <= 1, lambda: f"{shape} must be a vector, or the scalar -1.")
    ensure_same_type(values, default)
    ensure_same_type(values, node.outputs[0])
    ensure(values.ndim >= 1, lambda: f"{values} must have at least one dimension.")
    for kind, tensor in zip(kinds, partitions):
        ensure_type(tensor, TensorType.INT32, TensorType.INT64)
        if kind == "FIRST_DIM_SIZE":
            ensure(tensor.size == 1, f"{tensor} must have one value, the number of rows.")
        else:
            ensure(tensor.ndim == 1, f"{tensor} must be a vector.")
    inner = values.shape[1:]
    ensure(
        default.size == 1
        or (default.ndim <= len(inner) and all(a in (1, b) for a, b in zip(reversed(default.shape), reversed(inner)))),
        lambda: f"{default} must be one value, or fit the values' shape {inner}.",
    )
    node.prepared = kinds
    context.set_dynamic(node.outputs[0])


def run_dense(context: Context, node: Node) -> None:
    kinds = node.prepared
    shape, values, default, *partitions = node.inputs
    if kinds[0] == "FIRST_DIM_SIZE":
        size = int(partitions[0].data.item())
        kinds, partitions = kinds[1:], partitions[1:]
    else:
        size = partitions[0].size - 1
    ensure(size >= 0, lambda: f"{partitions[0]} gives {size} rows.")
    parts, rows = [], size
    needs = [*map(_rows_of, kinds[1:], partitions[1:]), (values.shape[0], True)]
    for kind, tensor, (count, exactly) in zip(kinds, partitions, needs):
        part, parted = _by_splits(tensor, rows, count) if kind == "ROW_SPLITS" else _by_rows(tensor, rows)
        ensure(parted == count if exactly else parted >= count, f"{tensor} parts {parted} values, and there are {count}.")
        parts.append(part)
        rows = parted
    sizes = _output_sizes(shape, len(parts), [size, *(part.longest for part in parts)], values.shape[1:])
    output = node.outputs[0]
    context.resize_tensor(output, (*sizes, *values.shape[1:]))
    # The place of each value among the output's rows; -1 where it is cut off.
    places = np.arange(min(size, sizes[0], int(parts[0].rows[-1]) + 1 if len(parts[0].rows) else 0))
    for part, width in zip(parts, sizes[1:]):
        inside = (part.rows < len(places)) & (part.places < width)
        above = places[np.where(inside, part.rows, 0)] if len(places) else np.zeros(len(inside), np.int64)
        inside &= (above >= 0) if len(places) else False
        places = np.where(inside, above * width + part.places, -1)
    data = output.data
    inner = values.shape[1:]
    fill = default.data.reshape(()) if default.size == 1 else default.data
    data[...] = np.broadcast_to(fill, inner)
    kept = places >= 0
    data.reshape(-1, *inner)[places[kept]] = values.data[kept]


def _rows_of(kind: str, tensor: Tensor) -> tuple[int, bool]:
    """Return the number of rows of a partition, and whether that is final (row splits) or a lower bound (row ids)."""
    if kind == "ROW_SPLITS":
        return tensor.size - 1, True
    return int(tensor.data.max(initial=-1)) + 1, False


def _by_splits(tensor: Tensor, rows: int, count: int) -> tuple[_Partition, int]:
    """Decode row splits of the first `count` values; return the partition and the number of values."""
    splits = tensor.data.astype(np.int64)
    ensure(
        0 < len(splits) <= rows + 1 and splits[0] == 0 and not (splits[1:] < splits[:-1]).any(),
        lambda: f"{tensor} must have row splits of at most {rows} rows that begin with 0 and never fall.",
    )
    values = np.arange(min(count, int(splits[-1])))
    owners = np.searchsorted(splits, values, "right") - 1
    # TensorFlow Text's kernel begins to compare at 1.
    longest = max(1, int(np.diff(splits).max())) if len(splits) > 1 else 0
    return _Partition(owners, values - splits[owners], longest), int(splits[-1])


def _by_rows(tensor: Tensor, rows: int) -> tuple[_Partition, int]:
    """Decode row ids; return the partition and the number of values."""
    owners = tensor.data.astype(np.int64)
    ensure(
        len(owners) == 0 or (owners[0] >= 0 and owners[-1] < rows and not (owners[1:] < owners[:-1]).any()),
        lambda: f"{tensor} must have rows from 0 up to before {rows} that never fall.",
    )
    begins = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1]))) if len(owners) else owners
    lengths = np.diff(np.concatenate((begins, [len(owners)])))
    places = np.arange(len(owners)) - np.repeat(begins, lengths)
    return _Partition(owners, places, int(lengths.max(initial=0))), len(owners)


def _output_sizes(shape: Tensor, ragged: int, found: list[int], inner: tuple[int, ...]) -> list[int]:
    """Return the sizes of the output's first and ragged dimensions: what `shape` asks for, or the sizes `found` where it is -1.

    Args:
        ragged: the number of ragged dimensions.
        inner: the sizes of the values' own dimensions.
    """
    if shape.ndim == 0:
        wanted = int(shape.data.item())
        ensure(wanted == -1, lambda: f"{shape} is the scalar {wanted}; as a scalar it must be -1.")
        return found
    sizes = [int(value) for value in shape.data]
    ensure(
        len(sizes) == ragged + 1 + len(inner) and all(size >= -1 for size in sizes),
        lambda: f"{shape} asks for the shape {sizes}; it must have {ragged + 1 + len(inner)} dimensions of -1 or more.",
    )
    ensure(
        all(size in (-1, real) for size, real in zip(sizes[ragged + 1 :], inner)),
        lambda: f"{shape} asks for the shape {sizes}, and the values have {inner} at its end.",
    )
    return [real if size < 0 else size for size, real in zip(sizes, found)]


TO_TENSOR = Registration(
    prepare=prepare_dense,
    invoke=run_dense,
    pure=True,
    differences="More types and default values than a single number are taken; row splits that lead outside are refused.",
)
