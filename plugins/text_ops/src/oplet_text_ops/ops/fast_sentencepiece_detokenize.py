"""TFText>FastSentencepieceDetokenize: texts of rows of ids, by a sentencepiece model that the converter rewrote as a FlatBuffer.

Inputs: the model (uint8), token ids (int32) and their row splits. Output: a string for each row.

Numerics: optimized_decoder.cc of tensorflow/text.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet_text_ops.nodes import ensure_row_splits, give, table_of
from oplet_text_ops.sentencepiece.decoder import Decoder


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    model, codes, splits = node.inputs
    ensure_type(model, TensorType.UINT8)
    ensure_type(codes, TensorType.INT32)
    ensure_type(splits, TensorType.INT32, TensorType.INT64)
    ensure_type(node.outputs[0], TensorType.STRING)
    if model.is_constant:
        table_of(node, model, "decoder", Decoder)
    context.set_dynamic(node.outputs[0])


def invoke(context: Context, node: Node) -> None:
    model, codes, splits = node.inputs
    decoder = table_of(node, model, "decoder", Decoder)
    values = codes.data.reshape(-1)
    give(context, node.outputs[0], decoder.decode(values, ensure_row_splits(splits, len(values))))


REGISTRATION = Registration(
    prepare=prepare,
    invoke=invoke,
    pure=True,
    types=(TensorType.INT32,),
    differences="Codes below those of the model and row splits that do not end with the number of codes are refused.",
)
