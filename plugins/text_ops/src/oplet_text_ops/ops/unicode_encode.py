"""UnicodeEncode: strings from code points.

Inputs are code points of int32 and their row splits [n + 1]; the output is strings [n]. Options: `output_encoding`, `errors` ('strict',
'replace' or 'ignore') and `replacement_char`.

Numerics: tensorflow/core/kernels/unicode_ops.cc.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.strings import STRING
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import ensure_row_splits, give
from oplet_text_ops.texts.encodings import encoder, read_errors

#: Bytes of scratch per code point.
_SCRATCH = 40


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    points, splits = node.inputs
    ensure_vector(points, TensorType.INT32)
    ensure_type(splits, TensorType.INT64, TensorType.INT32)
    ensure_type(node.outputs[0], TensorType.STRING)
    node.prepared = encoder(options_of(node).get("output_encoding")), read_errors(node, controls=False)
    context.set_dynamic(node.outputs[0])


def bind(context: Context, node: Node) -> Thunk:
    write, errors = node.prepared
    points, splits = node.inputs

    def run() -> None:
        values = points.data
        charge(_SCRATCH * values.size + STRING * splits.size)
        rows = ensure_row_splits(splits, values.size)
        made, kept = errors.apply(values, f"{points} has values that are no code points")
        give(context, node.outputs[0], write(made, np.concatenate([[0], np.cumsum(kept)])[rows]))

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.INT32,))
