"""SentenceFragmentsV2: start and end of the fragments of documents that punctuation ends.

Input: a vector of documents. Outputs (int64): the offset of each fragment's first byte, that of the byte behind its last, its
properties as bits (1: it ends with terminal punctuation, 2: with more than one mark, 4: with a closing bracket), the offset of
its terminal punctuation or -1, and the number of fragments of each document.

Numerics: sentence_fragmenter_v2.cc of tensorflow/text; see `oplet_text_ops.sentences.fragments`.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet_text_ops.nodes import give, makes
from oplet_text_ops.sentences.fragments import Fragment, fragments


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 5)
    ensure_type(node.inputs[0], TensorType.STRING)
    ensure(node.inputs[0].ndim == 1, lambda: f"{node.inputs[0]} must be a vector.")
    makes(context, node, TensorType.INT64)


def invoke(context: Context, node: Node) -> None:
    found: list[Fragment] = []
    counts = []
    for document in node.inputs[0].data.tolist():
        checkpoint()
        here = fragments(document)
        found += here
        counts.append(len(here))
    columns = list(zip(*found)) or [(), (), (), ()]
    for output, column in zip(node.outputs, [*columns, counts]):
        give(context, output, column)


REGISTRATION = Registration(prepare=prepare, invoke=invoke, pure=True, types=(TensorType.STRING,))
