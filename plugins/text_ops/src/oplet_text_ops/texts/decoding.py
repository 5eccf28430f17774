"""Shared parts of UnicodeDecode and UnicodeDecodeWithOffsets.

Numerics: tensorflow/core/kernels/unicode_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oplet import Context, Node, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.strings import StringMeter
from oplet_text_ops.attributes import options_of
from oplet_text_ops.batches import parts
from oplet_text_ops.nodes import give_all
from oplet_text_ops.texts.encodings import Decoded, Errors, decoder, read_errors

__all__ = ["bind_decoding", "decode_all", "prepare_decoding"]

#: Bytes of scratch per byte of text.
_SCRATCH = 80


def prepare_decoding(context: Context, node: Node, columns: Sequence[TensorType]) -> None:
    """Check the node, and prepare row splits and one output of each of these types."""
    ensure_operands(node, 1, 1 + len(columns))
    ensure_type(node.inputs[0], TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.INT64, TensorType.INT32)
    for output, type in zip(node.outputs[1:], columns):
        ensure_type(output, type)
    node.prepared = decoder(options_of(node).get("input_encoding")), read_errors(node, controls=True)
    for output in node.outputs:
        context.set_dynamic(output)


def bind_decoding(context: Context, node: Node) -> Thunk:
    """Return the function that writes row splits, code points and, if there is a third output, byte offsets."""
    read, errors = node.prepared
    source = node.inputs[0]

    def run() -> None:
        found = decode_all(source.data.ravel().tolist(), read, errors)
        splits = np.concatenate([[0], np.cumsum(found.counts)])
        give_all(context, node, splits, found.points, found.starts)

    return run


def decode_all(texts: Sequence[bytes], read: Callable[[Sequence[bytes]], Decoded], errors: Errors) -> Decoded:
    """Decode all strings by `read`, and apply the error policy.

    Raises:
        EnsureError: a string has an error, and the policy is 'strict'.
    """
    none = np.zeros(0, np.int64)
    found = [Decoded(none, none, none)]
    meter = StringMeter()
    for part in parts(texts, _SCRATCH):
        points, starts, counts = read(part)
        points, kept = errors.apply(points, "a string has bytes that are no character of its encoding")
        ends = np.concatenate([[0], np.cumsum(kept)])[np.concatenate([[0], np.cumsum(counts)])]
        found.append(Decoded(points, starts[kept], np.diff(ends)))
        meter.add(2 * sum(column.nbytes for column in found[-1]), 0)  # each once more when they are joined
    return Decoded(*(np.concatenate(column) for column in zip(*found)))
