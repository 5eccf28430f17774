"""SentencepieceOp and SentencepieceTokenizeOp, -TokenizeWithOffsetsOp and -DetokenizeOp: texts as pieces and back, by a sentencepiece model.

SentencepieceOp loads the model, a ModelProto in its option `model`, for the others, which take it as first input. Converters write this op where
the tokenizer is made within the function; for one that is made outside of it they leave a `Placeholder`, without the model.

The tokenizers' inputs are the model, the texts, `nbest_size` and `alpha`, and three flags: add the piece of the beginning, add that of the end,
reverse; their outputs the ids of the pieces (int32) or the pieces themselves (strings), their row splits, and with offsets for each piece its
first byte and the one behind it (int64). The detokenizer's inputs are the model, the pieces or their ids, their row splits, and the flags that
the tokenizer was given; its output a string for each row.

Numerics: sentencepiece_processor.cc of google/sentencepiece 0.1.96; see `oplet_text_ops.classic`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet.kernels.strings import STRING, StringMeter
from oplet_text_ops.attributes import options_of
from oplet_text_ops.classic.processor import Ends, Piece, Processor
from oplet_text_ops.nodes import ensure_row_splits, give, makes

#: Bytes of a piece with its number.
_PAIR = 96


def prepare_model(context: Context, node: Node) -> None:
    ensure_operands(node, 0)
    ensure_type(node.outputs[0], TensorType.RESOURCE)
    node.cached("processor", [], lambda: Processor(_proto(node)))
    context.resize_tensor(node.outputs[0], ())


def run_model(context: Context, node: Node) -> None:
    node.outputs[0].data[()] = node.cached("processor", [], lambda: Processor(_proto(node)))


def _proto(node: Node) -> bytes:
    """Return the ModelProto bytes in the options."""
    proto = options_of(node, text=False).get("model")
    found = proto if isinstance(proto, bytes) else b""
    ensure(len(found) > 0, "the option 'model' is missing; it must be a sentencepiece model.")
    return found


MODEL = Registration(prepare=prepare_model, invoke=run_model)


def prepare_cutting(node: Node) -> None:
    """Check the inputs of a sentencepiece tokenizing op.

    Raises:
        EnsureError: an input has a wrong type or shape, or the option `return_nbest` is set.
    """
    model, texts, nbest, _, *flags = node.inputs
    ensure_type(model, TensorType.RESOURCE)
    ensure_type(texts, TensorType.STRING)
    ensure_type(nbest, TensorType.INT32)
    ensure(not options_of(node).get("return_nbest"), "the option 'return_nbest' is set; only the best pieces are given.")
    check_flags(flags)


def check_flags(flags: Sequence[Tensor]) -> None:
    """Raise an error unless each flag tensor is a single Boolean.

    Raises:
        EnsureError: a flag is not a single Boolean.
    """
    for flag in flags:
        ensure_type(flag, TensorType.BOOL)
        ensure(flag.size == 1, f"{flag} must have one value.")


def read_flags(flags: Sequence[Tensor]) -> Ends:
    """Return the values of the three flag tensors: add begin-of-sentence, add end-of-sentence, reverse."""
    return Ends(*(bool(flag.data.item()) for flag in flags))


def processor_of(node: Node) -> Processor:
    """Return the sentencepiece model that the first input, written by a SentencepieceOp, holds.

    Raises:
        EnsureError: the input holds something else.
    """
    model = node.inputs[0]
    found = model.data.reshape(-1)[0] if model.size == 1 else None
    ensure(isinstance(found, Processor), lambda: f"{model} must hold a sentencepiece model, from a SentencepieceOp.")
    return cast("Processor", found)


def cut_all(node: Node) -> list[list[Piece]]:
    """Tokenize each text of a node's second input; return the pieces of each.

    Raises:
        EnsureError: the input `nbest` requests sampling.
    """
    _, texts, nbest, _, *flags = node.inputs
    processor, ends = processor_of(node), read_flags(flags)
    ensure(
        set(nbest.data.reshape(-1).tolist()) <= {0, 1},
        lambda: f"{nbest} asks for sampling, which is not served; it must be 0 or 1.",
    )
    meter = StringMeter()
    return [processor.pieces(text, ends, meter) for text in texts.data.reshape(-1).tolist()]


def prepare_tokenize(context: Context, node: Node) -> None:
    ensure_operands(node, 7, 4 if node.op_name.endswith("WithOffsetsOp") else 2)
    prepare_cutting(node)
    makes(context, node, (TensorType.INT32, TensorType.STRING), (TensorType.INT32, TensorType.INT64), TensorType.INT64)


def run_tokenize(context: Context, node: Node) -> None:
    rows = cut_all(node)
    pieces = [piece for row in rows for piece in row]
    wanted = node.outputs[0]
    codes = [piece.text if wanted.type is TensorType.STRING else piece.number for piece in pieces]
    give(context, wanted, codes)
    give(context, node.outputs[1], np.cumsum([0, *map(len, rows)]))
    if len(node.outputs) == 4:
        give(context, node.outputs[2], [piece.start for piece in pieces])
        give(context, node.outputs[3], [piece.end for piece in pieces])


TOKENIZE = Registration(
    prepare=prepare_tokenize,
    invoke=run_tokenize,
    types=(TensorType.STRING,),
    differences="Sampling and more than the best pieces are refused.",
)


def prepare_detokenize(context: Context, node: Node) -> None:
    ensure_operands(node, 6)
    model, pieces, splits, *flags = node.inputs
    ensure_type(model, TensorType.RESOURCE)
    ensure_type(pieces, TensorType.INT32, TensorType.STRING)
    ensure_type(splits, TensorType.INT32, TensorType.INT64)
    makes(context, node, TensorType.STRING)
    check_flags(flags)


def run_detokenize(context: Context, node: Node) -> None:
    _, pieces, partition, *flags = node.inputs
    processor, ends = processor_of(node), read_flags(flags)
    values = pieces.data.reshape(-1).tolist()
    splits = array("q", ensure_row_splits(partition, len(values)).tobytes())
    meter = StringMeter()
    made = []
    for begin, end in pairwise(splits):
        meter.hold(_PAIR * (end - begin))
        texts = [each if isinstance(each, bytes) else processor.piece(each) for each in values[begin:end]]
        # A number stands for its piece, and the piece for the number that the model finds for it.
        counted = meter.total
        made.append(processor.text([(text, processor.number(text)) for text in texts], ends, meter))
        meter.settle(meter.total - counted, STRING + len(made[-1]))
    give(context, node.outputs[0], made)


DETOKENIZE = Registration(prepare=prepare_detokenize, invoke=run_detokenize, types=(TensorType.INT32, TensorType.STRING))
