"""SentencepieceDetokenizeOp: texts from rows of pieces or ids, by a sentencepiece model.

Inputs: the model, the pieces (strings) or their ids (int32), their row splits, and the flags that the tokenizer was given: add
the piece of the beginning, add that of the end, reverse. Output: a string for each row.

Numerics: sentencepiece_processor.cc of google/sentencepiece 0.1.96; see `oplet_text_ops.classic`.
"""

from __future__ import annotations

from array import array
from itertools import pairwise

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet.kernels.strings import STRING, StringMeter
from oplet_text_ops.classic.nodes import check_flags, processor_of, read_flags
from oplet_text_ops.nodes import ensure_row_splits, give

#: Bytes of a piece with its number.
_PAIR = 96


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 6)
    model, pieces, splits, *flags = node.inputs
    ensure_type(model, TensorType.RESOURCE)
    ensure_type(pieces, TensorType.INT32, TensorType.STRING)
    ensure_type(splits, TensorType.INT32, TensorType.INT64)
    ensure_type(node.outputs[0], TensorType.STRING)
    check_flags(flags)
    context.set_dynamic(node.outputs[0])


def invoke(context: Context, node: Node) -> None:
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


REGISTRATION = Registration(prepare=prepare, invoke=invoke, types=(TensorType.INT32, TensorType.STRING))
