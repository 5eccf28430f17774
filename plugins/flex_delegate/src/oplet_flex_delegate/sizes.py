"""How many bytes the outputs of an operator will have where TensorFlow's shape functions cannot tell, or do not count the text of strings.

An estimate from above, of the values that it is about to read: what would be more than `Limits` allow is refused before it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oplet_flex_delegate.images import image_bytes
from oplet_flex_delegate.library import executor, tensorflow

__all__ = ["BOUNDED", "ESTIMATES", "KEEPS_TEXT", "longest", "nbytes_of"]

#: Operators whose outputs, of shapes that depend on data, are never much larger than their inputs.
BOUNDED = frozenset(
    """
    BroadcastArgs BroadcastGradientArgs CTCGreedyDecoder ConcatOffset DecodeBase64 DecodeCSV DecodeRaw DecodeWav DenseCountSparseOutput
    DenseToDenseSetOperation DenseToSparseSetOperation DeserializeManySparse DeserializeSparse DynamicPartition EmptyTensorList EncodeBase64
    GuaranteeConst Identity IdentityN ListDiff LookupTableExportV2 LookupTableFindV2 LookupTableSizeV2 NonMaxSuppression NonMaxSuppressionV2
    NonMaxSuppressionV3 NonMaxSuppressionV5 NonMaxSuppressionWithOverlaps ParseExample ParseExampleV2 ParseSequenceExample
    ParseSequenceExampleV2 ParseSingleExample ParseSingleSequenceExample RaggedCountSparseOutput RaggedTensorFromVariant RaggedTensorToSparse
    RaggedTensorToVariant RaggedTensorToVariantGradient ReadVariableOp Reshape SparseAdd SparseAddGrad SparseConcat SparseCountSparseOutput
    SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseReduceMaxSparse SparseReduceSumSparse SparseReorder SparseReshape
    SparseSlice SparseSliceGrad SparseSoftmax SparseSparseMaximum SparseSparseMinimum SparseSplit SparseToSparseSetOperation Squeeze
    StringFormat StringLower StringSplit StringSplitV2 StringStrip StringUpper TensorListConcatLists TensorListElementShape
    TensorListFromTensor TensorListGetItem TensorListLength TensorListPopBack TensorListPushBack TensorListPushBackBatch
    TensorListSetItem TensorListSplit TensorMapErase TensorMapHasKey TensorMapInsert
    TensorMapLookup TensorMapSize TensorMapStackKeys UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeScript UnicodeTranscode
    Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 Unpack VariableShape Where
    """.split()
)

#: Operators whose text is their inputs' text, each piece at most once (or a constant number of times).
KEEPS_TEXT = frozenset(
    """
    Concat ConcatV2 DecodeBase64 DecodeCSV DynamicPartition DynamicStitch EncodeBase64 EncodeJpeg EncodeJpegVariableQuality EncodePng EncodeWav
    EnsureShape ExpandDims GuaranteeConst HistogramSummary Identity IdentityN ListDiff LookupTableExportV2 MergeSummary OptionalGetValue Pack
    ParallelDynamicStitch ParseExample ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample
    ParseSingleSequenceExample RaggedTensorFromVariant RandomShuffle ReadVariableOp Reshape Reverse ReverseSequence ReverseV2 Roll
    ScalarSummary SerializeManySparse SerializeSparse SerializeTensor ShardedFilename ShardedFilespec Slice SparseConcat SparseReorder
    SparseSlice SparseSplit Split SplitV Squeeze StridedSlice StringFormat StringLower StringSplit StringSplitV2 StringStrip StringUpper
    TensorListGetItem TensorListPopBack TensorMapLookup TensorMapStackKeys Transpose UnicodeEncode UnicodeTranscode Unique UniqueV2
    UniqueWithCounts UniqueWithCountsV2 Unpack
    """.split()
)

#: What a string takes beside its text, in TensorFlow and in Python.
_STRING = 64
Attributes = Mapping[str, Any]
Inputs = Sequence[Any]


def nbytes_of(shape: Sequence[int], itemsize: int) -> int:
    """Bytes of a tensor of that shape."""
    return math.prod(shape) * itemsize


def longest(strings: Any) -> int:
    """Bytes of the longest string of a tensor of TensorFlow's; 0 if it is empty."""
    [lengths] = executor()(b"StringLength", 1, [strings], ("unit", b"BYTE"))
    found = lengths.numpy()
    return int(found.max()) if found.size else 0


def _size(tensor: Any) -> int:
    return math.prod(tensor.shape.as_list())


def _row(tensor: Any) -> int:
    """Bytes of one slice along the first axis."""
    return nbytes_of(tensor.shape.as_list()[1:], _itemsize(tensor))


def _itemsize(tensor: Any) -> int:
    return tensor.dtype.size or _STRING


def _most(tensor: Any) -> int:
    """The largest of its values; -1 if it has none."""
    values = tensor.numpy()
    return int(values.max()) if values.size else -1


def _segments(attributes: Attributes, inputs: Inputs) -> int:
    return (_most(inputs[-1]) + 1) * _row(inputs[0])


def _stitch(attributes: Attributes, inputs: Inputs) -> int:
    half = len(inputs) // 2
    last = max((_most(each) for each in inputs[:half]), default=-1)
    indices, data = inputs[0], inputs[half]
    return (last + 1) * nbytes_of(data.shape.as_list()[indices.shape.rank :], _itemsize(data))


def _empty_rows(attributes: Attributes, inputs: Inputs) -> int:
    rows = inputs[2].numpy().ravel()
    return (int(rows[0]) if rows.size else 0) * (8 * max(rows.size, 1) + _itemsize(inputs[1]) + 8)


def _empty_ragged_rows(attributes: Attributes, inputs: Inputs) -> int:
    return max(_most(inputs[2]), 0) * (16 + _itemsize(inputs[1]))


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
    for axis, size in enumerate(wanted[: len(sizes)]):
        sizes[axis] = size if size >= 0 else sizes[axis]
    return math.prod(max(size, 0) for size in sizes) * _itemsize(values)


def _ragged_counts(attributes: Attributes, inputs: Inputs) -> int:
    return max(_most(inputs[2]), 0) * max(_size(inputs[0]) - 1, 1) * _itemsize(inputs[3])


def _sparse_counts(attributes: Attributes, inputs: Inputs) -> int:
    shape = inputs[2].numpy().ravel().tolist()
    rows = max(int(shape[0]), 1) if len(shape) > 1 else 1
    return max(_most(inputs[3]), 0) * rows * _itemsize(inputs[4])


def _sparse_reduced(attributes: Attributes, inputs: Inputs) -> int:
    shape = inputs[2].numpy().ravel().tolist()
    axes = {int(axis) % max(len(shape), 1) for axis in inputs[3].numpy().ravel()}
    return math.prod(max(int(size), 1) for axis, size in enumerate(shape) if axis not in axes) * _itemsize(inputs[1])


def _crossed(attributes: Attributes, inputs: Inputs) -> int:
    """For every row, the product of the numbers of features in each column."""
    count = int(attributes["N"])
    indices, shapes, dense = inputs[:count], inputs[2 * count : 3 * count], [each for each in inputs[3 * count :] if each.shape.rank == 2]
    rows = max((int(each.numpy().ravel()[0]) for each in shapes if _size(each)), default=0)
    rows = max([rows, *(each.shape.as_list()[0] for each in dense)])
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
    return _finite(float(crossed.sum()) * (16 + _STRING)) + rows * 64


def _list_of(attributes: Attributes, inputs: Inputs) -> int:
    return max(_most(inputs[1]), 0) * 64


def _scattered(place: int) -> Callable[[Attributes, Inputs], int]:
    """A list as long as its last element's place says."""
    return lambda attributes, inputs: (_most(inputs[place]) + 1) * 64


def _stacked(attributes: Attributes, inputs: Inputs) -> int:
    [length] = executor()(b"TensorListLength", 1, inputs[:1], ())
    return int(length.numpy()) * _element(attributes, inputs[0], inputs[1:])


def _gathered(attributes: Attributes, inputs: Inputs) -> int:
    return _size(inputs[1]) * _element(attributes, inputs[0], inputs[2:])


def _element(attributes: Attributes, handle: Any, given: Inputs) -> int:
    """Bytes of an element of a list of tensors: of the list's shape, or the one that is asked for, or else its first."""
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


def _text(strings: Any) -> int:
    """Bytes of all strings of a tensor."""
    [lengths] = executor()(b"StringLength", 1, [strings], ("unit", b"BYTE"))
    return int(lengths.numpy().astype(np.int64).sum())


def _joined(attributes: Attributes, inputs: Inputs) -> int:
    count = max((_size(each) for each in inputs), default=0)
    each = sum(longest(part) + len(attributes["separator"]) for part in inputs)
    return count * (each + _STRING)


def _reduced_text(attributes: Attributes, inputs: Inputs) -> int:
    return _text(inputs[0]) + _size(inputs[0]) * (len(attributes["separator"]) + _STRING)


def _joined_segments(attributes: Attributes, inputs: Inputs) -> int:
    return _reduced_text(attributes, inputs) + max(_most(inputs[2]), 0) * _STRING


def _replaced(attributes: Attributes, inputs: Inputs) -> int:
    rewrite = attributes["rewrite"] if "rewrite" in attributes else inputs[2].numpy()
    rewrite = rewrite if isinstance(rewrite, bytes) else b""
    text = _text(inputs[0])
    return (text + _size(inputs[0])) * (len(rewrite) + 1) + text * rewrite.count(b"\\")


def _formatted_numbers(attributes: Attributes, inputs: Inputs) -> int:
    return _size(inputs[0]) * (max(attributes["width"], 0) + max(attributes["precision"], 0) + 400)


def _n_grams(attributes: Attributes, inputs: Inputs) -> int:
    rows, words = max(_size(inputs[1]) - 1, 0), _size(inputs[0])
    piece = longest(inputs[0]) + len(attributes["separator"]) + len(attributes["left_pad"]) + len(attributes["right_pad"])
    return sum((words + 2 * rows * width) * (width * piece + _STRING) for width in attributes["ngram_widths"] if width > 0)


def _padded_raw(attributes: Attributes, inputs: Inputs) -> int:
    return _size(inputs[0]) * max(_most(inputs[1]), 0)


def _image(attributes: Attributes, inputs: Inputs) -> int:
    contents = inputs[0].numpy()
    return image_bytes(contents) * 8 if isinstance(contents, bytes) else 0


#: An estimate of an operator's outputs in bytes, of its attributes and its inputs.
ESTIMATES: dict[str, Callable[[Attributes, Inputs], int]] = {
    "AsString": _formatted_numbers,
    "DecodePaddedRaw": _padded_raw,
    "DynamicStitch": _stitch,
    "ParallelDynamicStitch": _stitch,
    "RaggedBincount": _ragged_counts,
    "RaggedFillEmptyRows": _empty_ragged_rows,
    "RaggedGather": _ragged_gather,
    "RaggedRange": _ragged_range,
    "RaggedTensorToTensor": _ragged_to_dense,
    "ReduceJoin": _reduced_text,
    "SparseBincount": _sparse_counts,
    "SparseFillEmptyRows": _empty_rows,
    "StringJoin": _joined,
    "StringNGrams": _n_grams,
    "TensorListGather": _gathered,
    "TensorListReserve": _list_of,
    "TensorListScatter": _scattered(1),
    "TensorListScatterIntoExistingList": _scattered(2),
    "TensorListScatterV2": _scattered(1),
    "TensorListResize": _list_of,
    "UnsortedSegmentJoin": _joined_segments,
    **dict.fromkeys(("RegexReplace", "StaticRegexReplace"), _replaced),
    **dict.fromkeys(("SparseCross", "SparseCrossHashed", "SparseCrossV2"), _crossed),
    **dict.fromkeys(("SparseReduceMax", "SparseReduceSum"), _sparse_reduced),
    **dict.fromkeys(("TensorListConcat", "TensorListConcatV2", "TensorListStack"), _stacked),
    **dict.fromkeys((f"Segment{way}" for way in ("Max", "Mean", "Min", "Prod", "Sum")), _segments),
    **dict.fromkeys((f"SparseSegment{way}" for way in ("Mean", "SqrtN", "Sum")), _segments),
    **dict.fromkeys(("DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng", "DecodeWebP"), _image),
}
