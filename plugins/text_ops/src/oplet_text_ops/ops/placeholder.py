"""Placeholder: always an error, as it stands for an input that the converter dropped from the file.

That is the model of a `SentencepieceTokenizer` that was made outside of the converted function.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure


def prepare(context: Context, node: Node) -> None:
    ensure(
        False,
        f"the converter has left out what {node.outputs[0] if node.outputs else 'its output'} holds, and put a Placeholder there; make the"
        " tokenizer within the converted function, or take FastSentencepieceTokenizer, and convert the model again.",
    )


def invoke(context: Context, node: Node) -> None:
    prepare(context, node)


REGISTRATION = Registration(prepare=prepare, invoke=invoke)
