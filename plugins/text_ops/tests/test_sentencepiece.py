"""FastSentencepiece: codes, row splits and texts are those of TensorFlow Text, however they are worked out."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from plugins.text_ops.tests.pieces import FLAGS, MODELS, OneOp, piece_model, random_texts, recorded, sentences, strings, unpacked
from tests.places import SWEEP

from oplet import Interpreter, MutableOpResolver
from oplet.errors import OpletError
from oplet_text_ops import register_ops
from oplet_text_ops.sentencepiece.columns import cut_words
from oplet_text_ops.sentencepiece.encoder import Encoder
from oplet_text_ops.sentencepiece.lattice import cut_word


def encoder(model: str) -> Encoder:
    return Encoder(recorded()[f"{model}_encoder"].tobytes())


def runner(content: bytes) -> Interpreter:
    resolver = MutableOpResolver()
    register_ops(resolver)
    interpreter = Interpreter(model_content=content, op_resolver=resolver, plugins=[])
    interpreter.allocate_tensors()
    return interpreter


def tokenize(interpreter: Interpreter, texts: list[bytes]) -> list[Any]:
    [detail] = interpreter.get_input_details()
    interpreter.resize_tensor_input(detail["index"], [len(texts)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(detail["index"], strings(*texts))
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


@pytest.mark.parametrize("label", FLAGS)
@pytest.mark.parametrize("model", MODELS)
def test_codes_and_row_splits_are_tensorflow_text_s(model: str, label: str) -> None:
    codes, splits = tokenize(runner(piece_model(model, FLAGS[label])), unpacked("texts"))
    np.testing.assert_array_equal(splits, recorded()[f"{model}_{label}_splits"])
    np.testing.assert_array_equal(codes, recorded()[f"{model}_{label}"])


@pytest.mark.parametrize("model", MODELS)
def test_texts_of_codes_are_tensorflow_text_s(model: str) -> None:
    op = OneOp("TFText>FastSentencepieceDetokenize", {"Tsplits": 4}, ["object"])
    codes, splits = recorded()[f"{model}_plain"].astype(np.int32), recorded()[f"{model}_plain_splits"].astype(np.int64)
    [texts] = op(recorded()[f"{model}_decoder"], codes, splits)
    assert texts.tolist() == unpacked(f"{model}_texts")


@pytest.mark.parametrize("model", MODELS)
def test_texts_one_by_one_have_the_codes_of_texts_together(model: str) -> None:
    texts = unpacked("texts")
    together, splits = encoder(model).encode(texts, first=False, last=False, reverse=False)
    single = encoder(model)
    for number, text in enumerate(texts):
        codes, _ = single.encode([text], first=False, last=False, reverse=False)
        np.testing.assert_array_equal(codes, together[splits[number] : splits[number + 1]])


def test_words_are_cut_together_as_one_by_one() -> None:
    pieces = encoder("default")._pieces
    words = sorted({word for text in unpacked("texts") for word in text.split(b" ") if word})
    cuts = cut_words(pieces, words, np.array(pieces.scores, np.float64))
    at = 0
    for word, count, score, gap in zip(words, cuts.counts.tolist(), cuts.scores.tolist(), cuts.gaps.tolist()):
        codes, wanted_score, wanted_gap = cut_word(pieces, word)
        assert (cuts.codes[at : at + count].tolist(), score) == (codes, wanted_score)
        assert gap == pytest.approx(wanted_gap)
        at += count
    assert at == len(cuts.codes)


@pytest.mark.parametrize("model", ["default", "plain", "pairs"])
def test_models_whose_pieces_begin_with_spaces_are_cut_by_words(model: str) -> None:
    # These are nearly all models; the others are cut text by text, which takes longer.
    assert encoder(model)._words is not None
    assert encoder("spaces")._words is None
    assert encoder("suffixes")._words is None


def test_words_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oplet_text_ops.sentencepiece.words._KEPT_WORDS", 100)
    kept, texts = encoder("default"), unpacked("texts")
    for begin in range(0, len(texts), 20):
        part = texts[begin : begin + 20]
        ours = kept.encode(part, first=False, last=False, reverse=False)
        fresh = encoder("default").encode(part, first=False, last=False, reverse=False)
        for our, their in zip(ours, fresh):
            np.testing.assert_array_equal(our, their)
    assert kept._words is not None
    assert len(kept._words._numbers) < 600


@pytest.mark.parametrize("texts", [[], [b""], [b" "], [b"", b"  ", b"\t"]])
def test_texts_without_words_have_no_codes(texts: list[bytes]) -> None:
    codes, splits = encoder("default").encode(texts, first=False, last=False, reverse=False)
    assert codes.size == 0
    assert splits.tolist() == [0] * (len(texts) + 1)
    codes, splits = encoder("default").encode(texts, first=True, last=True, reverse=False)
    assert codes.tolist() == [1, 2] * len(texts)
    assert splits.tolist() == list(range(0, 2 * len(texts) + 1, 2))


def test_sampling_is_refused() -> None:
    op = OneOp("TFText>FastSentencepieceTokenize", {"Tsplits": 2, "out_type": 2}, ["int32", "int32"])
    feeds = [
        recorded()["plain_encoder"],
        strings(b"text"),
        np.array(5, np.int32),
        np.array(0, np.float32),
        *map(np.array, (False,) * 3),
    ]
    with pytest.raises(OpletError, match="nbest_size is 5; sampling is not part of this op"):
        op(*feeds)


@pytest.mark.parametrize(
    ("codes", "splits", "message"),
    [
        ([700], [0, 1], "code 700 is none of its sentencepiece model, which has 700 pieces from 0 on"),
        ([-1], [0, 1], "code -1 is none of its sentencepiece model"),
        ([1, 2], [0, 1], "must have row splits"),
        ([1, 2], [0, 3, 2], "must have row splits"),
        ([1, 2], [], "must have row splits"),
    ],
)
def test_codes_and_row_splits_that_lead_outside_are_refused(codes: list[int], splits: list[int], message: str) -> None:
    op = OneOp("TFText>FastSentencepieceDetokenize", {"Tsplits": 4}, ["object"])
    with pytest.raises(OpletError, match=message):
        op(recorded()["plain_decoder"], np.array(codes, np.int32), np.array(splits, np.int64))


@pytest.mark.parametrize("seed", range(6))
def test_damaged_models_are_refused_or_run(seed: int) -> None:
    pick = random.Random(seed)
    content, texts = recorded()["plain_encoder"], unpacked("texts")[:20]
    outcomes = set()
    for _ in range(40):
        table = content.copy()
        for _ in range(pick.randint(1, 8)):
            table[pick.randrange(64) if pick.random() < 0.3 else pick.randrange(len(table))] = pick.randrange(256)
        table = table[: pick.choice([len(table), pick.randrange(len(table))])]
        op = OneOp("TFText>FastSentencepieceTokenize", {"Tsplits": 2, "out_type": 2}, ["int32", "int32"])
        try:
            _, splits = op(table, strings(*texts), np.array(0, np.int32), np.array(0, np.float32), *map(np.array, (True,) * 3))
            outcomes.add("runs")
            assert splits[0] == 0
            assert (np.diff(splits) >= 0).all()
        except OpletError:
            outcomes.add("refused")
    assert outcomes == {"runs", "refused"}


def test_a_trie_that_goes_in_a_circle_is_refused() -> None:
    from oplet_text_ops.sentencepiece.trie import PieceTrie

    # Node 97 is the child under "a" of the root and of itself.
    units = np.zeros(512, np.uint32)
    units[97] = 97 | 97 << 10
    with pytest.raises(OpletError, match="goes in a circle"):
        PieceTrie(units)


@pytest.mark.parametrize(("values", "found"), [(None, [(7, 1)]), (8, [(7, 1)]), (7, []), (0, [])])
def test_keys_of_pieces_that_there_are_not_are_ignored(values: int | None, found: list[tuple[int, int]]) -> None:
    from oplet_text_ops.sentencepiece.trie import PieceTrie

    # The child under "a" of the root lies at 256 ^ 97, and its value, 7, beside it.
    units = np.full(512, 0x80000000, np.uint32)
    units[0] = 256 << 10
    units[256 ^ 97] = 97 | 0x100 | 1 << 10
    units[256 ^ 97 ^ 1] = 0x80000000 | 7
    assert list(PieceTrie(units, values).prefixes(b"ab", 0)) == found


def test_a_word_may_be_of_any_length() -> None:
    # One word of 200,000 bytes: no table of its parts grows with the square of that.
    codes, splits = tokenize(runner(piece_model("plain")), [b"a" * 200_000, b"a"])
    assert splits.tolist() == [0, len(codes) - 1, len(codes)]
    assert len(codes) > 1000


@pytest.mark.sweep
@pytest.mark.parametrize("model", MODELS)
def test_many_texts_have_tensorflow_text_s_codes(model: str) -> None:
    """100,000 of them with OPLET_EVERY_CASE, and 10,000 sentences."""
    pytest.importorskip("tensorflow_text", reason="pip install tensorflow-text to compare with its own kernels")
    from tensorflow_text.python.ops.fast_sentencepiece_tokenizer import gen_fast_sentencepiece_tokenizer as ops

    pick = random.Random(1)
    for number in range(1 + 10 // SWEEP):
        texts = sentences(10_000, pick) if number == 0 else random_texts(10_000, pick)
        compare(ops, model, texts, pick)


def compare(ops: Any, model: str, texts: list[bytes], pick: random.Random) -> None:
    """Tokenize the texts with both, and compare all."""
    flags = pick.choice(list(FLAGS.values()))
    wanted = ops.tf_text_fast_sentencepiece_tokenize(recorded()[f"{model}_encoder"], np.array(texts, object), 0, 0.0, *flags)
    first, last, reverse = flags
    for our, their in zip(encoder(model).encode(texts, first=first, last=last, reverse=reverse), wanted):
        np.testing.assert_array_equal(our, their.numpy())
