"""UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode and UnicodeScript: code points of strings and back.

The decoders' input is strings, counted as n whatever their shape; outputs are the row splits [n + 1], the code points as int32 and, with offsets,
where each begins in its string, in bytes of int64. The encoder's inputs are code points of int32 and their row splits [n + 1], the output strings
[n]. Transcoding converts strings of any shape to another encoding. Options: `input_encoding`, `output_encoding`, `errors` ('strict', 'replace' or
'ignore'), `replacement_char`, and but for the encoder `replace_control_characters` (those up to U+001F). UnicodeScript gives the script of each
code point (int32, of any shape), numbered as in TensorFlow's ICU; -1 for what is no code point.

Numerics: tensorflow/core/kernels/{unicode_ops,unicode_script_op}.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.strings import STRING, StringMeter
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import ensure_row_splits, give, give_all, makes, parts, string_vector
from oplet_text_ops.texts.code_points import scripts_of
from oplet_text_ops.texts.encodings import Decoded, Errors, decoder, encoder, read_errors

#: Bytes of scratch per byte of text.
_BYTE = 80
#: Bytes of scratch per code point.
_POINT = 40


def prepare_decode(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 3 if node.op_name.endswith("WithOffsets") else 2)
    ensure_type(node.inputs[0], TensorType.STRING)
    makes(context, node, (TensorType.INT64, TensorType.INT32), TensorType.INT32, TensorType.INT64)
    node.prepared = decoder(options_of(node).get("input_encoding")), read_errors(node, controls=True)


def bind_decode(context: Context, node: Node) -> Thunk:
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
    for part in parts(texts, _BYTE):
        points, starts, counts = read(part)
        points, kept = errors.apply(points, "a string has bytes that are no character of its encoding")
        ends = np.concatenate([[0], np.cumsum(kept)])[np.concatenate([[0], np.cumsum(counts)])]
        found.append(Decoded(points, starts[kept], np.diff(ends)))
        meter.add(2 * sum(column.nbytes for column in found[-1]), 0)  # each once more when they are joined
    return Decoded(*(np.concatenate(column) for column in zip(*found)))


DECODE = Registration(prepare=prepare_decode, bind=bind_decode, pure=True, types=(TensorType.STRING,))


def prepare_encode(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    points, splits = node.inputs
    ensure_vector(points, TensorType.INT32)
    ensure_type(splits, TensorType.INT64, TensorType.INT32)
    makes(context, node, TensorType.STRING)
    node.prepared = encoder(options_of(node).get("output_encoding")), read_errors(node, controls=False)


def bind_encode(context: Context, node: Node) -> Thunk:
    write, errors = node.prepared
    points, splits = node.inputs

    def run() -> None:
        values = points.data
        charge(_POINT * values.size + STRING * splits.size)
        rows = ensure_row_splits(splits, values.size)
        made, kept = errors.apply(values, f"{points} has values that are no code points")
        give(context, node.outputs[0], write(made, np.concatenate([[0], np.cumsum(kept)])[rows]))

    return run


ENCODE = Registration(prepare=prepare_encode, bind=bind_encode, pure=True, types=(TensorType.INT32,))


def prepare_transcode(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    ensure_type(node.inputs[0], TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.STRING)
    options = options_of(node)
    node.prepared = (
        decoder(options.get("input_encoding")),
        encoder(options.get("output_encoding")),
        read_errors(node, controls=True),
    )
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def bind_transcode(context: Context, node: Node) -> Thunk:
    read, write, errors = node.prepared
    source, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        charge(2 * STRING * source.size)
        found = decode_all(source.ravel().tolist(), read, errors)
        splits = np.concatenate([[0], np.cumsum(found.counts)])
        output[...] = string_vector(write(found.points, splits)).reshape(output.shape)

    return run


TRANSCODE = Registration(prepare=prepare_transcode, bind=bind_transcode, pure=True, types=(TensorType.STRING,))


def prepare_script(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    ensure_type(node.inputs[0], TensorType.INT32)
    ensure_type(node.outputs[0], TensorType.INT32)
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def bind_script(context: Context, node: Node) -> Thunk:
    points, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        output[...] = scripts_of(points)

    return run


SCRIPT = Registration(prepare=prepare_script, bind=bind_script, pure=True, types=(TensorType.INT32,))
