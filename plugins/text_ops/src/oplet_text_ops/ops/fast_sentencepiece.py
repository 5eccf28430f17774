"""TFText>FastSentencepieceTokenize and -Detokenize: ids of texts' pieces and back, by a sentencepiece model that the converter rewrote as
a FlatBuffer.

The tokenizer's inputs are the model (uint8), the texts (strings), `nbest_size` and `alpha`, and three flags: add the id of the beginning, add
that of the end, reverse; its outputs the token ids (int32) of all texts, and their row splits (int32). Models of any kind are treated as unigram
models: the best sum of scores wins. As in the C++, sampling does not happen. The detokenizer's inputs are the model, token ids and their row
splits; its output a string for each row.

Numerics: optimized_encoder.cc and optimized_decoder.cc of tensorflow/text; see `oplet_text_ops.sentencepiece`.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet_text_ops.nodes import ensure_row_splits, give, makes, table_of
from oplet_text_ops.sentencepiece.decoder import Decoder
from oplet_text_ops.sentencepiece.encoder import Encoder


def prepare_tokenize(context: Context, node: Node) -> None:
    ensure_operands(node, 7, 2)
    model, texts, nbest, _, *flags = node.inputs
    ensure_type(model, TensorType.UINT8)
    ensure_type(texts, TensorType.STRING)
    ensure_type(nbest, TensorType.INT32)
    for flag in flags:
        ensure_type(flag, TensorType.BOOL)
    for tensor in (nbest, *flags):
        ensure(tensor.size == 1, f"{tensor} must have one value.")
    makes(context, node, TensorType.INT32, (TensorType.INT32, TensorType.INT64))
    if model.is_constant:
        table_of(node, model, "encoder", Encoder)


def run_tokenize(context: Context, node: Node) -> None:
    model, texts, nbest, _, *flags = node.inputs
    wanted = int(nbest.data.item())
    ensure(wanted in (0, 1), lambda: f"nbest_size is {wanted}; sampling is not part of this op, which takes 0 or 1.")
    first, last, reverse = (bool(flag.data.item()) for flag in flags)
    encoder = table_of(node, model, "encoder", Encoder)
    codes, splits = encoder.encode(texts.data.reshape(-1).tolist(), first=first, last=last, reverse=reverse)
    give(context, node.outputs[0], codes)
    give(context, node.outputs[1], splits)


TOKENIZE = Registration(prepare=prepare_tokenize, invoke=run_tokenize, pure=True, types=(TensorType.STRING,))


def prepare_detokenize(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    model, codes, splits = node.inputs
    ensure_type(model, TensorType.UINT8)
    ensure_type(codes, TensorType.INT32)
    ensure_type(splits, TensorType.INT32, TensorType.INT64)
    makes(context, node, TensorType.STRING)
    if model.is_constant:
        table_of(node, model, "decoder", Decoder)


def run_detokenize(context: Context, node: Node) -> None:
    model, codes, splits = node.inputs
    decoder = table_of(node, model, "decoder", Decoder)
    values = codes.data.reshape(-1)
    give(context, node.outputs[0], decoder.decode(values, ensure_row_splits(splits, len(values))))


DETOKENIZE = Registration(
    prepare=prepare_detokenize,
    invoke=run_detokenize,
    pure=True,
    types=(TensorType.INT32,),
    differences="Codes below those of the model and row splits that do not end with the number of codes are refused.",
)
