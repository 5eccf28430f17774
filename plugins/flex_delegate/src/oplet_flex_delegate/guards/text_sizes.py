"""Upper bounds of the bytes of an operator's string outputs, from its input values."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oplet_flex_delegate.library import executor

__all__ = ["KEEPS_TEXT", "STRING", "TEXT_ESTIMATES", "largest", "longest", "size"]

#: Segments of JPEG that state the size: SOF0 to SOF15, without the tables among them.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_bytes(data: bytes) -> int:
    """Return width * height * frames of a PNG, JPEG, GIF or BMP file; 0 for other data."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return int(width * height)
    if data[:3] == b"GIF" and len(data) >= 10:
        return _gif(data)
    if data[:2] == b"BM" and len(data) >= 26:
        width, height = struct.unpack_from("<ii", data, 18)
        return int(abs(width) * abs(height))
    return _jpeg(data)


def _gif(data: bytes) -> int:
    """Return canvas size times frames, an upper bound: each frame begins with a comma, but other commas count too."""
    width, height = struct.unpack_from("<HH", data, 6)
    return int(width * height) * max(data.count(b","), 1)


def _jpeg(data: bytes) -> int:
    most, at = 0, data.find(b"\xff")
    while 0 <= at < len(data) - 8:
        if data[at + 1] in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            most = max(most, height * width)
        at = data.find(b"\xff", at + 1)
    return most


#: Operators whose text is their inputs' text, each piece at most once (or a constant number of times).
_KEEPS_TEXT = """
    Concat ConcatV2 DecodeBase64 DecodeCSV DynamicPartition DynamicStitch EncodeBase64 EncodeJpeg EncodeJpegVariableQuality
    EncodePng EncodeWav EnsureShape ExpandDims GuaranteeConst HistogramSummary Identity IdentityN ListDiff LookupTableExportV2
    MergeSummary OptionalGetValue Pack ParallelDynamicStitch ParseExample ParseExampleV2 ParseSequenceExample
    ParseSequenceExampleV2 ParseSingleExample ParseSingleSequenceExample RaggedTensorFromVariant RandomShuffle ReadVariableOp
    Reshape Reverse ReverseSequence ReverseV2 Roll ScalarSummary SerializeManySparse SerializeSparse SerializeTensor
    ShardedFilename ShardedFilespec Slice SparseConcat SparseReorder SparseSlice SparseSplit Split SplitV Squeeze StridedSlice
    StringFormat StringLower StringSplit StringSplitV2 StringStrip StringUpper TensorListGetItem TensorListPopBack
    TensorMapLookup TensorMapStackKeys Transpose UnicodeEncode UnicodeTranscode Unique UniqueV2 UniqueWithCounts
    UniqueWithCountsV2 Unpack
"""
KEEPS_TEXT = frozenset(_KEEPS_TEXT.split())

#: What a string takes beside its text, in TensorFlow and in Python.
STRING = 64
Attributes = Mapping[str, Any]
Inputs = Sequence[Any]


def longest(strings: Any) -> int:
    """Return the bytes of the longest string in a TensorFlow tensor; 0 if it is empty."""
    [lengths] = executor()(b"StringLength", 1, [strings], ("unit", b"BYTE"))
    found = lengths.numpy()
    return int(found.max()) if found.size else 0


def size(tensor: Any) -> int:
    """Return a tensor's number of elements."""
    return math.prod(tensor.shape.as_list())


def largest(tensor: Any) -> int:
    """Return a tensor's largest value; -1 if it is empty."""
    values = tensor.numpy()
    return int(values.max()) if values.size else -1


def _text(strings: Any) -> int:
    """Return the total bytes of all strings in a tensor."""
    [lengths] = executor()(b"StringLength", 1, [strings], ("unit", b"BYTE"))
    return int(lengths.numpy().astype(np.int64).sum())


def _joined(attributes: Attributes, inputs: Inputs) -> int:
    count = max((size(each) for each in inputs), default=0)
    each = sum(longest(part) + len(attributes["separator"]) for part in inputs)
    return count * (each + STRING)


def _reduced_text(attributes: Attributes, inputs: Inputs) -> int:
    return _text(inputs[0]) + size(inputs[0]) * (len(attributes["separator"]) + STRING)


def _joined_segments(attributes: Attributes, inputs: Inputs) -> int:
    return _reduced_text(attributes, inputs) + max(largest(inputs[2]), 0) * STRING


def _replaced(attributes: Attributes, inputs: Inputs) -> int:
    rewrite = attributes["rewrite"] if "rewrite" in attributes else inputs[2].numpy()
    rewrite = rewrite if isinstance(rewrite, bytes) else b""
    text = _text(inputs[0])
    return (text + size(inputs[0])) * (len(rewrite) + 1) + text * rewrite.count(b"\\")


def _formatted_numbers(attributes: Attributes, inputs: Inputs) -> int:
    each: int = max(attributes["width"], 0) + max(attributes["precision"], 0) + 400
    return size(inputs[0]) * each


def _n_grams(attributes: Attributes, inputs: Inputs) -> int:
    rows, words = max(size(inputs[1]) - 1, 0), size(inputs[0])
    piece = longest(inputs[0]) + len(attributes["separator"]) + len(attributes["left_pad"]) + len(attributes["right_pad"])
    return sum((words + 2 * rows * width) * (width * piece + STRING) for width in attributes["ngram_widths"] if width > 0)


def _padded_raw(attributes: Attributes, inputs: Inputs) -> int:
    return size(inputs[0]) * max(largest(inputs[1]), 0)


def _image(attributes: Attributes, inputs: Inputs) -> int:
    contents = inputs[0].numpy()
    return image_bytes(contents) * 8 if isinstance(contents, bytes) else 0


#: An estimate of an operator's outputs in bytes, of its attributes and its inputs.
TEXT_ESTIMATES: dict[str, Callable[[Attributes, Inputs], int]] = {
    "AsString": _formatted_numbers,
    "DecodePaddedRaw": _padded_raw,
    "ReduceJoin": _reduced_text,
    "StringJoin": _joined,
    "StringNGrams": _n_grams,
    "UnsortedSegmentJoin": _joined_segments,
    **dict.fromkeys(("RegexReplace", "StaticRegexReplace"), _replaced),
    **dict.fromkeys(("DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng"), _image),
}
