"""Output sizes of operators for which TensorFlow's shape functions do not know them, or ignore string contents.

Each is an upper bound in bytes, from the input values just before the operator runs, which is refused if `Limits` do not allow
as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oplet_flex_delegate.guards.text_sizes import STRING, TEXT_ESTIMATES, largest, size
from oplet_flex_delegate.library import executor, tensorflow

__all__ = ["BOUNDED", "ESTIMATES", "nbytes_of"]

#: Operators whose outputs, of shapes that depend on data, are never much larger than their inputs.
_BOUNDED = """
    BroadcastArgs BroadcastGradientArgs CTCGreedyDecoder ConcatOffset DecodeBase64 DecodeCSV DecodeRaw DecodeWav
    DenseCountSparseOutput DenseToDenseSetOperation DenseToSparseSetOperation DeserializeManySparse DeserializeSparse
    DynamicPartition EmptyTensorList EncodeBase64 GuaranteeConst Identity IdentityN ListDiff LookupTableExportV2
    LookupTableFindV2 LookupTableSizeV2 NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV5
    NonMaxSuppressionWithOverlaps ParseExample ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample
    ParseSingleSequenceExample RaggedCountSparseOutput RaggedTensorFromVariant RaggedTensorToSparse RaggedTensorToVariant
    RaggedTensorToVariantGradient ReadVariableOp Reshape SparseAdd SparseAddGrad SparseConcat SparseCountSparseOutput
    SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseReduceMaxSparse SparseReduceSumSparse SparseReorder
    SparseReshape SparseSlice SparseSliceGrad SparseSoftmax SparseSparseMaximum SparseSparseMinimum SparseSplit
    SparseToSparseSetOperation Squeeze StringFormat StringLower StringSplit StringSplitV2 StringStrip StringUpper
    TensorListConcatLists TensorListElementShape TensorListFromTensor TensorListGetItem TensorListLength TensorListPopBack
    TensorListPushBack TensorListPushBackBatch TensorListSetItem TensorListSplit TensorMapErase TensorMapHasKey
    TensorMapInsert TensorMapLookup TensorMapSize TensorMapStackKeys UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode
    UnicodeScript UnicodeTranscode Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 Unpack VariableShape Where
"""
BOUNDED = frozenset(_BOUNDED.split())

Attributes = Mapping[str, Any]
Inputs = Sequence[Any]


def nbytes_of(shape: Sequence[int], itemsize: int) -> int:
    """Return the bytes of a tensor of that shape."""
    return math.prod(shape) * itemsize


def _row(tensor: Any) -> int:
    """Return the bytes of one row of a tensor: of a slice along the first axis."""
    return nbytes_of(tensor.shape.as_list()[1:], _itemsize(tensor))


def _itemsize(tensor: Any) -> int:
    return int(tensor.dtype.size or STRING)


def _segments(attributes: Attributes, inputs: Inputs) -> int:
    return (largest(inputs[-1]) + 1) * _row(inputs[0])


def _stitch(attributes: Attributes, inputs: Inputs) -> int:
    half = len(inputs) // 2
    last = max((largest(each) for each in inputs[:half]), default=-1)
    indices, data = inputs[0], inputs[half]
    return (last + 1) * nbytes_of(data.shape.as_list()[indices.shape.rank :], _itemsize(data))


def _empty_rows(attributes: Attributes, inputs: Inputs) -> int:
    rows = inputs[2].numpy().ravel()
    count = int(rows[0]) if rows.size else 0
    return count * int(8 * max(rows.size, 1) + _itemsize(inputs[1]) + 8)


def _empty_ragged_rows(attributes: Attributes, inputs: Inputs) -> int:
    return max(largest(inputs[2]), 0) * (16 + _itemsize(inputs[1]))


def _ragged_range(attributes: Attributes, inputs: Inputs) -> int:
    with np.errstate(all="ignore"):
        starts, limits, deltas = (each.numpy().astype(np.float64) for each in inputs)
        try:
            lengths = np.abs((limits - starts) / np.where(deltas == 0, 1, deltas)) + 1
        except ValueError:  # shapes that do not fit, which TensorFlow refuses
            return 0
    return _finite(float(np.sum(lengths)) * _itemsize(inputs[0]))


def _finite(nbytes: float) -> int:
    return int(nbytes) if nbytes < 2.0**62 else 2**62


def _ragged_gather(attributes: Attributes, inputs: Inputs) -> int:
    splits, values, indices = inputs[:-2], inputs[-2], inputs[-1].numpy().ravel()
    bounds = None
    for each in reversed(splits):
        level = each.numpy().astype(np.int64)
        if bounds is None:
            bounds = level
        elif level.size and (level.min() < 0 or level.max() >= bounds.size):
            return 0  # which TensorFlow refuses
        else:
            bounds = bounds[level]
    if bounds is None or bounds.size < 2:
        return 0
    lengths = np.diff(bounds)
    inside = indices[(indices >= 0) & (indices < lengths.size)]
    return _finite(float(lengths[inside].sum()) * (_row(values) + 8))


def _ragged_to_dense(attributes: Attributes, inputs: Inputs) -> int:
    shape, values, _, *partitions = inputs
    wanted = shape.numpy().ravel().tolist()
    known: list[int] = []
    for kind, each in zip(attributes["row_partition_types"], partitions):
        numbers = each.numpy().astype(np.int64).ravel()
        if kind == b"FIRST_DIM_SIZE":
            known.append(int(numbers[0]) if numbers.size else 0)
        elif kind == b"VALUE_ROWIDS":
            known.append(int(np.unique(numbers, return_counts=True)[1].max()) if numbers.size else 0)
        else:
            if not known:
                known.append(max(numbers.size - 1, 0))
            known.append(int(np.diff(numbers).max()) if numbers.size > 1 else 0)
    sizes = [*known, *values.shape.as_list()[1:]]
    for axis, asked in enumerate(wanted[: len(sizes)]):
        sizes[axis] = asked if asked >= 0 else sizes[axis]
    return int(math.prod(max(each, 0) for each in sizes)) * _itemsize(values)


def _ragged_counts(attributes: Attributes, inputs: Inputs) -> int:
    return max(largest(inputs[2]), 0) * max(size(inputs[0]) - 1, 1) * _itemsize(inputs[3])


def _sparse_counts(attributes: Attributes, inputs: Inputs) -> int:
    shape = inputs[2].numpy().ravel().tolist()
    rows = max(int(shape[0]), 1) if len(shape) > 1 else 1
    return max(largest(inputs[3]), 0) * rows * _itemsize(inputs[4])


def _sparse_reduced(attributes: Attributes, inputs: Inputs) -> int:
    shape = inputs[2].numpy().ravel().tolist()
    axes = {int(axis) % max(len(shape), 1) for axis in inputs[3].numpy().ravel()}
    return math.prod(max(int(length), 1) for axis, length in enumerate(shape) if axis not in axes) * _itemsize(inputs[1])


def _crossed(attributes: Attributes, inputs: Inputs) -> int:
    """Return the bytes of a feature cross's outputs: each row has the product of the columns' feature counts."""
    count = int(attributes["N"])
    indices, shapes, dense = (
        inputs[:count],
        inputs[2 * count : 3 * count],
        [each for each in inputs[3 * count :] if each.shape.rank == 2],
    )
    rows = max((int(each.numpy().ravel()[0]) for each in shapes if size(each)), default=0)
    rows = int(max([rows, *(each.shape.as_list()[0] for each in dense)]))
    if rows > 1 << 24:
        return rows * 1024
    crossed = np.ones(rows)
    for each in indices:
        found = each.numpy()
        if found.ndim != 2 or not found.shape[1] or (found.size and (found[:, 0].min() < 0 or found[:, 0].max() >= rows)):
            return 0  # which TensorFlow refuses
        crossed *= np.bincount(found[:, 0], minlength=rows)
    for each in dense:
        crossed[: each.shape.as_list()[0]] *= each.shape.as_list()[1]
    return _finite(float(crossed.sum()) * (16 + STRING)) + rows * 64


def _list_of(attributes: Attributes, inputs: Inputs) -> int:
    return max(largest(inputs[1]), 0) * 64


def _scattered(place: int) -> Callable[[Attributes, Inputs], int]:
    """Build a function that returns the bytes of a list as long as the largest index in input `place` says."""
    return lambda attributes, inputs: (largest(inputs[place]) + 1) * 64


def _stacked(attributes: Attributes, inputs: Inputs) -> int:
    [length] = executor()(b"TensorListLength", 1, inputs[:1], ())
    return int(length.numpy()) * _element(attributes, inputs[0], inputs[1:])


def _gathered(attributes: Attributes, inputs: Inputs) -> int:
    return size(inputs[1]) * _element(attributes, inputs[0], inputs[2:])


def _element(attributes: Attributes, handle: Any, given: Inputs) -> int:
    """Return the bytes of a tensor list's element: from the list's shape, the requested one, or its first element."""
    run = executor()
    for shape in (*run(b"TensorListElementShape", 1, [handle], ("shape_type", 9)), *given):
        sizes = shape.numpy()
        if sizes.ndim == 1 and (sizes >= 0).all():
            return nbytes_of(sizes.tolist(), 8)
    tf = tensorflow()
    asked = [handle, tf.constant(0), tf.constant(-1)]
    [length] = run(b"TensorListLength", 1, [handle], ())
    if not int(length.numpy()):
        return 0
    try:
        [first] = run(b"TensorListGetItem", 1, asked, ("element_dtype", attributes["element_dtype"]))
    except tf.errors.OpError:  # it is not set, and has no shape: TensorFlow refuses to stack it
        return 0
    return nbytes_of(first.shape.as_list(), 8)


#: An estimate of an operator's outputs in bytes, of its attributes and its inputs.
ESTIMATES: dict[str, Callable[[Attributes, Inputs], int]] = {
    "DynamicStitch": _stitch,
    "ParallelDynamicStitch": _stitch,
    "RaggedBincount": _ragged_counts,
    "RaggedFillEmptyRows": _empty_ragged_rows,
    "RaggedGather": _ragged_gather,
    "RaggedRange": _ragged_range,
    "RaggedTensorToTensor": _ragged_to_dense,
    "SparseBincount": _sparse_counts,
    "SparseFillEmptyRows": _empty_rows,
    "TensorListGather": _gathered,
    "TensorListReserve": _list_of,
    "TensorListScatter": _scattered(1),
    "TensorListScatterIntoExistingList": _scattered(2),
    "TensorListScatterV2": _scattered(1),
    "TensorListResize": _list_of,
    **TEXT_ESTIMATES,
    **dict.fromkeys(("SparseCross", "SparseCrossHashed", "SparseCrossV2"), _crossed),
    **dict.fromkeys(("SparseReduceMax", "SparseReduceSum"), _sparse_reduced),
    **dict.fromkeys(("TensorListConcat", "TensorListConcatV2", "TensorListStack"), _stacked),
    **dict.fromkeys((f"Segment{way}" for way in ("Max", "Mean", "Min", "Prod", "Sum")), _segments),
    **dict.fromkeys((f"SparseSegment{way}" for way in ("Mean", "SqrtN", "Sum")), _segments),
}
