"""TFText>NgramsStringJoin, in tflite-support tftext:Ngrams: n-grams of `width` adjacent strings in a row, joined by `string_separator`.

Inputs: the strings, and the row splits (int64) of each ragged dimension, the outermost first; without row splits the rows are the last
dimension. Outputs: the joined strings, and new row splits, as many as were given.

Numerics: ngrams_kernel_template.h of tensorflow/text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.options import integer
from oplet.kernels.strings import StringMeter
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import ensure_row_splits, give, makes, string_vector

#: Bytes of a reference.
_REFERENCE = 8


def prepare(context: Context, node: Node) -> None:
    options = options_of(node)
    width = integer(options, "width", least=1)
    axis = integer(options, "axis", least=-1, most=-1)
    reduction = options.get("reduction_type", "STRING_JOIN")
    ensure(reduction == "STRING_JOIN", lambda: f"the option 'reduction_type' is {reduction!r:.40}; it must be 'STRING_JOIN'.")
    separator: Any = options.get("string_separator")
    ensure(isinstance(separator, str), lambda: f"the option 'string_separator' is {separator!r:.40}; it must be a string.")
    ensure(
        len(node.inputs) >= 1 and None not in node.inputs and len(node.outputs) == len(node.inputs),
        lambda: f"it has {len(node.inputs)} inputs and {len(node.outputs)} outputs; strings and their row splits go in and out.",
    )
    values, *splits = node.inputs
    ensure_type(values, TensorType.STRING)
    for each in splits:
        ensure_type(each, TensorType.INT64)
    makes(context, node, TensorType.STRING, TensorType.INT64)
    ensure(values.ndim == 1 if splits else values.ndim >= 1, lambda: f"{values} must have rows of strings along axis {axis}.")
    node.prepared = width, separator.encode()


def invoke(context: Context, node: Node) -> None:
    width, separator = node.prepared
    values, *partitions = node.inputs
    strings = values.data.reshape(-1).tolist()
    if partitions:
        *outer, inner = partitions
        splits = ensure_row_splits(inner, len(strings))
    else:
        outer, length = [], values.shape[-1]
        splits = np.arange(len(strings) // length + 1 if length else 1) * length
    lengths = np.diff(splits)
    counts = np.maximum(lengths - width + 1, 0)
    meter = StringMeter()
    made: list[bytes] = []
    meter.hold(2 * _REFERENCE * (len(strings) + min(width, len(strings))))
    for begin, end in zip(splits[:-1].tolist(), splits[1:].tolist()):
        made += meter.join_windows(separator, strings[begin:end], width)
    if not partitions:
        shape = (*values.shape[:-1], max(values.shape[-1] - width + 1, 0))
        give(context, node.outputs[0], string_vector(made).reshape(shape))
        return
    give(context, node.outputs[0], made)
    for each, output in zip(outer, node.outputs[1:]):
        give(context, output, each.data)
    give(context, node.outputs[-1], np.concatenate(([0], np.cumsum(counts))))


REGISTRATION = Registration(
    prepare=prepare,
    invoke=invoke,
    pure=True,
    types=(TensorType.STRING,),
    differences="Widths below 1 and row splits that do not end with the number of strings are refused.",
)
