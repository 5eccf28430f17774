"""SentencepieceTokenizer's own ops: pieces, places and texts of the library behind TensorFlow Text, where the model carries its proto."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from plugins.text_ops.tests.pieces import MODELS, classic_model, random_texts, recorded, sentences, strings, unpacked

from oplet import Interpreter, Limits, MutableOpResolver
from oplet.errors import LimitError, OpletError
from oplet.kernels.strings import StringMeter
from oplet_text_ops import register_ops
from oplet_text_ops.classic.processor import Ends, Processor


def ends(model: str) -> Ends:
    """What the record was made with."""
    return Ends(model != "spaces", True, model == "pairs")


def proto(model: str) -> bytes:
    return bytes(recorded()[f"{model}_proto"].tobytes())


@pytest.mark.parametrize("model", MODELS)
def test_pieces_and_places_are_the_library_s(model: str) -> None:
    processor = Processor(proto(model))
    codes, starts, stops = (recorded()[f"{model}_classic_{part}"].tolist() for part in ("codes", "starts", "ends"))
    splits = recorded()[f"{model}_classic_splits"].tolist()
    for number, text in enumerate(unpacked("texts")):
        here = slice(splits[number], splits[number + 1])
        wanted = list(zip(codes[here], starts[here], stops[here]))
        assert [
            (piece.number, piece.start, piece.end) for piece in processor.pieces(text, ends(model), StringMeter())
        ] == wanted, text


@pytest.mark.parametrize("model", MODELS)
def test_texts_of_pieces_are_the_library_s(model: str) -> None:
    processor = Processor(proto(model))
    codes, splits = (recorded()[f"{model}_classic_{part}"].tolist() for part in ("codes", "splits"))
    for number, text in enumerate(unpacked(f"{model}_classic_texts")):
        pieces = [processor.piece(code) for code in codes[splits[number] : splits[number + 1]]]
        assert processor.text([(piece, processor.number(piece)) for piece in pieces], ends(model), StringMeter()) == text


def interpreter(
    source: str,
    op: str,
    kinds: list[str],
    settings: dict[str, Any],
    *feeds: Any,
    proto: bytes = b"",
    limits: Limits | None = None,
) -> Interpreter:
    resolver = MutableOpResolver()
    register_ops(resolver)
    content = classic_model(source, op, kinds, settings, *feeds, proto=proto)
    return Interpreter(model_content=content, op_resolver=resolver, plugins=[], limits=limits)


def run(interpreter: Interpreter, *feeds: Any) -> list[Any]:
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def cutting(*texts: bytes, nbest: int = 0) -> list[Any]:
    return [strings(*texts), np.array(nbest, np.int32), np.array(0, np.float32), *map(np.array, (True, False, False))]


def test_a_model_that_carries_its_proto_cuts_texts_and_puts_them_together() -> None:
    feeds = cutting(b"of the  text", b"")
    settings = {"out_type": 5, "Tsplits": 4, "return_nbest": False}
    cutter = interpreter(
        "SentencepieceOp",
        "SentencepieceTokenizeWithOffsetsOp",
        ["object", "int64", "int64", "int64"],
        settings,
        *feeds,
        proto=proto("plain"),
    )
    pieces, splits, starts, stops = run(cutter, *feeds)
    assert pieces[0] == b"<s>"
    assert b"".join(pieces[1 : splits[1]]) == "\u2581of\u2581the\u2581text".encode()
    assert (splits[0], splits[2] - splits[1], starts[0], stops[0], stops[splits[1] - 1]) == (0, 1, 0, 0, 12)
    cutter = interpreter(
        "SentencepieceOp", "SentencepieceTokenizeOp", ["int32", "int32"], {"out_type": 2}, *feeds, proto=proto("plain")
    )
    codes, ends = run(cutter, *feeds)
    assert ends.tolist() == splits.tolist()
    feeds = [codes, ends, *map(np.array, (False,) * 3)]
    joiner = interpreter("SentencepieceOp", "SentencepieceDetokenizeOp", ["object"], {}, *feeds, proto=proto("plain"))
    assert run(joiner, *feeds)[0].tolist() == [b"of the text", b""]


def test_rows_are_charged_for_their_own_pieces() -> None:
    """Many short rows take little memory for a time, a long one much."""
    count, limits, refused = 40_000, Limits(max_arena_bytes=3_600_000), []
    codes, flags = np.full(count, 5, np.int32), [*map(np.array, (False,) * 3)]
    for splits in (np.arange(count + 1, dtype=np.int64), np.array([0, count], np.int64)):
        feeds = [codes, splits, *flags]
        joiner = interpreter(
            "SentencepieceOp", "SentencepieceDetokenizeOp", ["object"], {}, *feeds, proto=proto("plain"), limits=limits
        )
        try:
            run(joiner, *feeds)
        except LimitError:
            refused.append(splits.size)
    assert refused == [2]


def test_a_model_without_its_proto_is_refused_and_told_what_to_do() -> None:
    feeds = cutting(b"text")
    cutter = interpreter("Placeholder", "SentencepieceTokenizeOp", ["int32", "int32"], {}, *feeds)
    with pytest.raises(OpletError, match="make the tokenizer within the converted function, or take FastSentencepieceTokenizer"):
        cutter.allocate_tensors()


def test_sampling_is_refused() -> None:
    feeds = cutting(b"text", nbest=-1)
    cutter = interpreter("SentencepieceOp", "SentencepieceTokenizeOp", ["int32", "int32"], {}, *feeds, proto=proto("plain"))
    with pytest.raises(OpletError, match="asks for sampling"):
        run(cutter, *feeds)


def test_a_model_of_the_converter_whose_tokenizer_is_made_within_gives_tensorflow_s_codes() -> None:
    resolver = MutableOpResolver()
    register_ops(resolver)
    content = recorded()["within"].tobytes()
    texts = unpacked("texts")[:60]
    answers = Interpreter(model_content=content, op_resolver=resolver, plugins=[]).get_signature_runner()(texts=strings(*texts))
    for name in ("codes", "splits"):
        np.testing.assert_array_equal(answers[name], recorded()[f"within_{name}"])


@pytest.mark.parametrize("model", ["plain", "pairs", "bytes"])
def test_damaged_protos_are_refused_or_run(model: str) -> None:
    pick = random.Random(0)
    whole, outcomes = proto(model), set()
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(pick.randint(1, 4)):
            damaged[pick.randrange(len(damaged))] = pick.randrange(256)
        try:
            processor = Processor(bytes(damaged[: pick.choice([len(damaged), pick.randrange(len(damaged))])]))
            for text in unpacked("texts")[:10]:
                processor.pieces(text, ends(model), StringMeter())
            outcomes.add("runs")
        except OpletError:
            outcomes.add("refused")
    assert outcomes == {"runs", "refused"}


@pytest.mark.sweep
@pytest.mark.parametrize("model", MODELS)
def test_random_texts_have_the_library_s_pieces(model: str) -> None:
    tf = pytest.importorskip("tensorflow")
    text = pytest.importorskip("tensorflow_text", reason="pip install tensorflow-text to compare with its own kernels")
    pick = random.Random(2)
    texts = random_texts(7000, pick) + sentences(3000, pick)
    processor = Processor(proto(model))
    codes, starts, stops = text.SentencepieceTokenizer(proto(model)).tokenize_with_offsets(tf.constant(np.array(texts, object)))
    for each, *wanted in zip(texts, codes.to_list(), starts.to_list(), stops.to_list()):
        found = processor.pieces(each, Ends(False, False, False), StringMeter())
        assert [[piece[part] for piece in found] for part in (1, 2, 3)] == wanted, each
