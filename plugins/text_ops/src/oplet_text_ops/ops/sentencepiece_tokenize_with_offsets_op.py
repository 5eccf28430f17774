"""SentencepieceTokenizeWithOffsetsOp: tokenize texts by a sentencepiece model, with offsets.

Inputs: the model, the texts, `nbest_size` and `alpha`, and three flags: add the piece of the beginning, add that of the end,
reverse. Outputs: the ids of the pieces (int32) or the pieces themselves (strings), their row splits, and for each piece its
first byte and the one behind it (int64).

Numerics: sentencepiece_processor.cc of google/sentencepiece 0.1.96; see `oplet_text_ops.classic`.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet_text_ops.classic.nodes import cut_all, prepare_cutting
from oplet_text_ops.nodes import give


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 7, 4)
    prepare_cutting(node)
    ensure_type(node.outputs[0], TensorType.INT32, TensorType.STRING)
    ensure_type(node.outputs[1], TensorType.INT32, TensorType.INT64)
    for output in node.outputs[2:]:
        ensure_type(output, TensorType.INT64)
    for output in node.outputs:
        context.set_dynamic(output)


def invoke(context: Context, node: Node) -> None:
    rows = cut_all(node)
    pieces = [piece for row in rows for piece in row]
    wanted = node.outputs[0]
    give(context, wanted, [piece.text if wanted.type is TensorType.STRING else piece.number for piece in pieces])
    give(context, node.outputs[1], np.cumsum([0, *map(len, rows)]))
    give(context, node.outputs[2], [piece.start for piece in pieces])
    give(context, node.outputs[3], [piece.end for piece in pieces])


REGISTRATION = Registration(
    prepare=prepare,
    invoke=invoke,
    types=(TensorType.STRING,),
    differences="Sampling and more than the best pieces are refused.",
)
