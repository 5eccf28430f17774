"""Shared parts of the sentencepiece ops: the model as first input, and the trailing flag inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from oplet import Node, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.strings import StringMeter
from oplet_text_ops.attributes import options_of
from oplet_text_ops.classic.processor import Ends, Piece, Processor

__all__ = ["check_flags", "cut_all", "prepare_cutting", "processor_of", "read_flags"]


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
