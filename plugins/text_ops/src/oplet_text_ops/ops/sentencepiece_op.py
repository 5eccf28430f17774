"""SentencepieceOp: load a sentencepiece model, for the ops that take it as first input.

The option `model` is its ModelProto. Converters write this op where the tokenizer is made within the function; for one that is made
outside of it they leave a `Placeholder`, without the model.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet_text_ops.attributes import options_of
from oplet_text_ops.classic.processor import Processor


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 0)
    ensure_type(node.outputs[0], TensorType.RESOURCE)
    node.cached("processor", [], lambda: Processor(_proto(node)))
    context.resize_tensor(node.outputs[0], ())


def invoke(context: Context, node: Node) -> None:
    node.outputs[0].data[()] = node.cached("processor", [], lambda: Processor(_proto(node)))


def _proto(node: Node) -> bytes:
    """Return the ModelProto bytes in the options."""
    proto = options_of(node, text=False).get("model")
    found = proto if isinstance(proto, bytes) else b""
    ensure(len(found) > 0, "the option 'model' is missing; it must be a sentencepiece model.")
    return found


REGISTRATION = Registration(prepare=prepare, invoke=invoke)
