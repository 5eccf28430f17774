"""TFText>ByteSplitByOffsets and TFText>ByteSplitWithOffsets: substrings by given offsets, and all single bytes of strings.

The former's inputs are strings [n], starts and ends in bytes as int32, and their row splits [n + 1] of int64; its outputs the parts as strings,
and the same row splits. The latter's input is strings [n]; its outputs all bytes as uint8, the row splits [n + 1] of int64, and where each byte
begins and ends in its string, as int32.

Numerics: core/kernels/byte_splitter.cc of tensorflow/text.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.strings import make_strings
from oplet_text_ops.nodes import ensure_row_splits, give, give_all, makes

#: Bytes of scratch for each part, besides itself.
_PART = 200
#: Bytes of scratch per byte of text.
_BYTE = 24


def prepare_parts(context: Context, node: Node) -> None:
    ensure_operands(node, 4, 2)
    for tensor, type in zip(node.inputs, (TensorType.STRING, TensorType.INT32, TensorType.INT32, TensorType.INT64)):
        ensure_vector(tensor, type)
    makes(context, node, TensorType.STRING, TensorType.INT64)


def bind_parts(context: Context, node: Node) -> Thunk:
    source, starts, ends, splits = node.inputs

    def run() -> None:
        texts, first, last = source.data.tolist(), starts.data, ends.data
        ensure(first.size == last.size, lambda: f"{starts} has {first.size} starts, and {ends} has {last.size} ends.")
        rows = ensure_row_splits(splits, first.size)
        ensure(
            rows.size == len(texts) + 1,
            lambda: f"{splits} has {rows.size} row splits for {len(texts)} strings; it must have one more.",
        )
        charge(_PART * first.size)
        counts = np.diff(rows)
        sizes = np.repeat(np.fromiter(map(len, texts), np.int64, len(texts)), counts)
        wrong = np.flatnonzero((first < 0) | (first > last) | (last > sizes))
        if wrong.size:
            at = int(wrong[0])
            ensure(False, f"part {at} goes from {first[at]} to {last[at]} of a string of {sizes[at]} bytes; it must lie inside.")
        whole = np.repeat(np.arange(len(texts)), counts)
        parts = [*zip(whole.tolist(), first.tolist(), last.tolist())]
        give(context, node.outputs[0], make_strings(lambda part: texts[part[0]][part[1] : part[2]], parts, _size))
        give(context, node.outputs[1], rows)

    return run


def _size(part: tuple[int, int, int]) -> int:
    return part[2] - part[1]


PARTS = Registration(prepare=prepare_parts, bind=bind_parts, pure=True, types=(TensorType.STRING,))


def prepare_bytes(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 4)
    ensure_vector(node.inputs[0], TensorType.STRING)
    makes(context, node, TensorType.UINT8, TensorType.INT64, TensorType.INT32)


def bind_bytes(context: Context, node: Node) -> Thunk:
    source = node.inputs[0]

    def run() -> None:
        texts = source.data.tolist()
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        splits = np.concatenate([[0], np.cumsum(sizes)])
        charge(_BYTE * int(splits[-1]))
        starts = np.arange(splits[-1]) - np.repeat(splits[:-1], sizes)
        give_all(context, node, np.frombuffer(b"".join(texts), np.uint8), splits, starts, starts + 1)

    return run


BYTES = Registration(prepare=prepare_bytes, bind=bind_bytes, pure=True, types=(TensorType.STRING,))
