"""Answers: those that numpy computes, whatever the signatures, the way of weights and embeddings, and the pieces they come in."""

from __future__ import annotations

import io
import json
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.lm.tests.makers import (
    CONTEXT,
    EXECUTOR,
    HUGGINGFACE,
    METADATA,
    MODEL,
    SENTENCEPIECE,
    SHARED_MODELS,
    Little,
    Piece,
    characters,
    field,
    litertlm,
    metadata,
    packed,
    pieces,
    task,
)

from oplet import Interpreter
from oplet.errors import LimitError, ModelError, StateError
from oplet_lm import LanguageModel, Sampling
from oplet_lm.sampler import Sampler

LAYOUTS: dict[str, dict[str, Any]] = {
    "two prefills": {},
    "no prefill": {"prefills": ()},
    "one long prefill": {"prefills": (16,)},
    "a prefill of any length": {"prefills": (-1,)},
    "weights in a section of their own": {"external": True},
    "an embedder": {"embedder": True},
    "a cache that is read twice": {"twice": True},
    "an auxiliary model": {"split": True},
    "an auxiliary model and an embedder": {"split": True, "embedder": True},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("prompt", ["a", "hello", "the quick brown fox", "x" * 27])
def test_an_answer_is_that_of_the_model(layout: str, prompt: str, tmp_path: Path) -> None:
    little = Little(**LAYOUTS[layout])
    model = LanguageModel(little.save(tmp_path))
    room = CONTEXT - len(prompt)
    answer = model.generate(prompt, max_tokens=min(room, 12))
    assert answer.tokens == little.greedy([ord(c) for c in prompt], min(room, 12))
    assert answer == "".join(map(chr, answer.tokens)) == "".join(model.stream(prompt, max_tokens=min(room, 12)))
    assert answer.ended_by == "length"
    assert model.generate(prompt, max_tokens=4).tokens == answer.tokens[:4]


def test_an_auxiliary_model_has_to_fit_and_is_left_alone_where_the_decoder_needs_none(tmp_path: Path) -> None:
    path, little, other = tmp_path / "bundle", Little(), Little(split=True, context=16).pieces()[-1]
    path.write_bytes(litertlm([*little.pieces(), other]))
    assert LanguageModel(path).generate("abc", max_tokens=4).tokens == little.greedy([ord(c) for c in "abc"], 4)
    path.write_bytes(litertlm([*Little(split=True).pieces()[:-1], other]))
    with pytest.raises(ModelError, match=r"'decode_mask' makes .*'mask' .*, which is taken with the shape \[1, 1, 1, 33\]"):
        LanguageModel(path).generate("a", max_tokens=4)


@pytest.mark.parametrize("family", ["gemma3", "gemma", "llama"])
def test_a_real_family_answers_as_its_signatures_do(family: str, tmp_path: Path) -> None:
    data = (SHARED_MODELS / f"{family}_q4_block32_ekv64.tflite").read_bytes()
    path = tmp_path / "real.litertlm"
    path.write_bytes(litertlm([(HUGGINGFACE, {}, packed(characters())), (MODEL, {"model_type": "TF_LITE_PREFILL_DECODE"}, data)]))
    prompt = "what is there to say?"
    answer = LanguageModel(path).generate(prompt, max_tokens=24)
    runner = Interpreter(model_content=data).get_signature_runner("decode")
    state = {n: np.zeros(d["shape"], d["dtype"]) for n, d in runner.get_input_details().items() if n.startswith("kv")}
    tokens = [ord(c) for c in prompt]
    for place in range(len(prompt) + 23):
        state = runner(tokens=np.array([[tokens[place]]], np.int32), input_pos=np.array([place], np.int32), **state)
        logits = state.pop("logits").reshape(-1)
        if place >= len(prompt) - 1:
            tokens.append(int(logits.argmax()))
    assert answer.tokens == tokens[len(prompt) :]


@pytest.mark.parametrize("split", [False, True])
def test_a_hundred_steps_copy_no_cache_and_take_no_more_memory(split: bool, tmp_path: Path) -> None:
    little = Little(context=4096, split=split)
    model = LanguageModel(little.save(tmp_path))
    model.generate("warm up", max_tokens=20)
    stream = iter(model._steps([ord("a")], 200, "length", Sampler(Sampling()), model._streams, True))
    next(stream)
    [cache] = model._executor._arrays.values()
    places = {tensor.data.ctypes.data for tensor in _caches(model)}
    assert places == {cache.ctypes.data}
    tracemalloc.start()
    try:
        for _ in range(10):
            next(stream)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(100):
            next(stream)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {tensor.data.ctypes.data for tensor in _caches(model)} == places
    assert model.copied_bytes == 0
    assert peak - before < cache.nbytes / 2  # of 128 KiB: a copy of it, however short, would be seen
    assert after - before < cache.nbytes / 8  # Python keeps some freed tuples for the next ones


def _caches(model: LanguageModel) -> list[Any]:
    """Return the cache as input and as output of what updates it in decoding."""
    graph, names = model._executor._decode.parts[-1].runner.subgraph, ("kv_cache_k_0", "new cache")
    return [tensor for tensor in graph.tensors if tensor.name in names]


def test_a_cache_that_cannot_be_written_in_place_is_copied_and_counted(tmp_path: Path) -> None:
    model = LanguageModel(Little(twice=True, prefills=()).save(tmp_path))
    model.generate("abc", max_tokens=5)
    [cache] = model._executor._arrays.values()
    assert model.copied_bytes == 7 * cache.nbytes


def test_a_conversation_reads_what_is_new_alone(tmp_path: Path) -> None:
    little = Little(context=256)
    template = "{% for m in messages %}[{{ m.content }}]{% endfor %}"
    model = LanguageModel(little.save(tmp_path, metadata(template=template)))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "good day"}]
    first = model.generate(messages, max_tokens=3)
    assert first.tokens == little.greedy([ord(c) for c in "[good day]"], 3)
    held = len(model._executor.tokens)
    messages += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "what"}]
    read = []
    decode = model._executor._decode.run
    model._executor._decode.run = lambda tokens, start: (read.append(start), decode(tokens, start))[1]  # type: ignore[method-assign]
    second = model.generate(messages, max_tokens=3)
    assert second.tokens == little.greedy([ord(c) for c in "[good day][yes][what]"], 3)
    assert held >= 10
    assert min(read) >= 10


def test_an_answer_ends_before_a_stop_sequence_and_no_part_of_one_is_told(tmp_path: Path) -> None:
    little = Little()
    plain = little.greedy([ord("a"), ord("b")], 12)
    for count in (1, 2, 3):
        for place in range(12 - count):
            stop = tuple(plain[place : place + count])
            model = LanguageModel(little.save(tmp_path, metadata(stop)))
            answer = model.generate("ab", max_tokens=12)
            first = next(at for at in range(12) if tuple(plain[at : at + count]) == stop)
            assert answer.tokens == plain[:first]
            assert answer.ended_by == "stop"
            assert "".join(model.stream("ab", max_tokens=12)) == answer


def test_a_stop_sequence_may_be_a_text_and_a_beginning_that_goes_on_otherwise_is_told(tmp_path: Path) -> None:
    little = Little()
    plain = little.greedy([ord("a")], 10)
    other = chr(plain[2]) + chr((plain[3] + 1) % 128)
    model = LanguageModel(little.save(tmp_path, metadata(other)))
    assert model.generate("a", max_tokens=10).tokens == plain
    assert "".join(model.stream("a", max_tokens=10)) == "".join(map(chr, plain))


def test_what_may_begin_a_stop_sequence_is_no_part_of_a_text_that_is_cut_off(tmp_path: Path) -> None:
    little = Little()
    plain = little.greedy([ord("a")], 10)
    assert plain[2] not in plain[:2] + plain[3:5]
    model = LanguageModel(little.save(tmp_path, metadata((plain[2], plain[3], 127, 127))))
    for count, told in ((2, 2), (3, 2), (4, 2), (5, 5), (0, 0)):  # as of LiteRT-LM
        answer = model.generate("a", max_tokens=count)
        assert answer == "".join(map(chr, plain[:told])) == "".join(model.stream("a", max_tokens=count))
        assert answer.tokens == plain[:count]
        assert answer.ended_by == "length"


def test_a_full_context_ends_in_one_sentence(tmp_path: Path) -> None:
    model = LanguageModel(Little().save(tmp_path))
    answer = model.generate("hello")
    assert answer.ended_by == "context"
    assert len(answer.tokens) == CONTEXT - 5  # as of LiteRT-LM: a prompt and its answer fill the context
    told = []
    with pytest.raises(
        LimitError, match=r"^The context of 32 tokens is full before the answer ends; begin a new conversation\.$"
    ):
        told.extend(model.stream("hello"))
    assert "".join(told) == answer
    with pytest.raises(LimitError, match=r"^The prompt has 32 tokens, and the model room for 32 with its answer; give"):
        model.generate("x" * 32)
    assert len(model.generate("x" * 31).tokens) == 1


def test_the_context_is_what_the_bundle_says_where_that_is_less(tmp_path: Path) -> None:
    model = LanguageModel(Little().save(tmp_path, metadata(most=20)))
    assert model.context == 20
    assert len(model.generate("hello").tokens) == 15


def test_a_start_token_goes_before_a_prompt_once(tmp_path: Path) -> None:
    model = LanguageModel(Little().save(tmp_path, metadata(start=2)))
    assert model.encode("ab") == [2, 97, 98]
    assert model.encode("\x02ab") == [2, 97, 98]


def test_an_answer_that_another_interrupts_says_so(tmp_path: Path) -> None:
    model = LanguageModel(Little().save(tmp_path))
    stream = model.stream("hello", max_tokens=10)
    next(stream)
    model.generate("b", max_tokens=1)
    with pytest.raises(StateError, match="Another answer was begun meanwhile"):
        list(stream)


def test_what_interrupts_an_answer_leaves_the_next_one_as_it_would_be(tmp_path: Path) -> None:
    model = LanguageModel(Little().save(tmp_path))
    wanted = model.generate("world", max_tokens=6)
    stream = model.stream("hello", max_tokens=20)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert model.generate("world", max_tokens=6) == wanted
    invoke = model._executor._decode.parts[0].runner.invoke

    def interrupted() -> None:
        invoke()
        raise KeyboardInterrupt

    model._executor._decode.parts[0].runner.invoke = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        model.generate("worry", max_tokens=6)
    model._executor._decode.parts[0].runner.invoke = invoke  # type: ignore[method-assign]
    assert model.generate("world", max_tokens=6) == wanted


@pytest.mark.parametrize("kind", [1, 5], ids=["a cache of keys", "linear attention"])
def test_caches_begin_anew_with_each_text_and_after_an_interruption(kind: int, tmp_path: Path) -> None:
    names = b"".join(field(n, "kv_cache_k_0") for n in (1, 2, 3, 4))
    path = tmp_path / "state.litertlm"
    path.write_bytes(
        litertlm([*Little(prefills=()).pieces(metadata()), (EXECUTOR, {}, field(1, field(2, names + field(6, kind))))])
    )
    model = LanguageModel(path)
    [cache] = model._executor._arrays.values()
    model.generate("hello", max_tokens=9)
    model.generate("a", max_tokens=1)
    alone = cache.copy()
    model.generate("hello", max_tokens=9)
    run = model._executor._decode.run
    model._executor._decode.run = lambda tokens, start: (run(tokens, start), 1 / 0)[0]  # type: ignore[func-returns-value, method-assign]
    with pytest.raises(ZeroDivisionError):
        model.generate("hello", max_tokens=9)
    model._executor._decode.run = run  # type: ignore[method-assign]
    model.generate("a", max_tokens=1)
    np.testing.assert_array_equal(cache, alone)
    assert (np.abs(cache).reshape(CONTEXT, -1).sum(axis=1) > 0).sum() == 1


def test_models_answer_side_by_side_and_each_for_itself(tmp_path: Path) -> None:
    path = Little().save(tmp_path)
    models = [LanguageModel(path) for _ in range(2)]
    wanted = [models[0].generate(prompt, max_tokens=12) for prompt in ("hello", "abc")]
    streams = [model.stream(prompt, max_tokens=12) for model, prompt in zip(models, ("hello", "abc"))]
    pieces = list(zip_longest(*streams, fillvalue=""))
    assert ["".join(told) for told in zip(*pieces)] == wanted
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            found = pool.map(lambda model, prompt: model.generate(prompt, max_tokens=12), models, ("hello", "abc"))
            assert list(found) == wanted


def test_threads_that_ask_one_model_get_their_own_answer_or_are_told_that_another_was_begun(tmp_path: Path) -> None:
    model = LanguageModel(Little().save(tmp_path))
    wanted = {prompt: model.generate(prompt, max_tokens=20) for prompt in ("hello", "abc", "world")}
    found: list[tuple[str, object]] = []

    def ask(prompt: str) -> None:
        for _ in range(20):
            try:
                found.append((prompt, model.generate(prompt, max_tokens=20)))
            except StateError as error:
                found.append((prompt, str(error)))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(wanted)) as pool:
            list(pool.map(ask, wanted))
    finally:
        sys.setswitchinterval(before)
    assert len(found) == 60
    told = [answer for prompt, answer in found if answer != wanted[prompt]]
    assert set(told) <= {"Another answer was begun meanwhile; a LanguageModel gives one after the other."}


def test_what_is_no_number_of_tokens_or_share_is_refused(tmp_path: Path) -> None:
    model = LanguageModel(Little().save(tmp_path))
    for name, value in (("top_k", -1), ("temperature", float("nan")), ("top_p", float("inf")), ("max_tokens", -1)):
        with pytest.raises(ValueError, match=name):
            model.generate("a", **{name: value})
    for name, other in (
        ("top_k", 2.5),
        ("max_tokens", 2.5),
        ("seed", 1.5),
        ("max_tokens", "2"),
    ):  # 2.5 tokens would never be reached
        with pytest.raises(ValueError, match=f"{name} is .*; give an integer from 0 on"):
            model.generate("a", **{name: other})
    with pytest.raises(ValueError, match="temperature is 'hot'; give a number from 0 on"):
        model.generate("a", temperature="hot")  # type: ignore[arg-type]
    for prompt in ([{"text": "hello"}], b"hello", None, {"role": "user", "content": "hello"}, ["hello"]):
        with pytest.raises(ValueError, match='Give a text, or messages with a "role" and a "content" each'):
            model.generate(prompt)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="surrogates not allowed"):
        model.generate("\ud800")
    with pytest.raises(ModelError, match="has no chat template; give the prompt as a text"):
        model.generate([{"role": "user", "content": "hello"}])


# Sampling ------------------------------------------------------------------------------------------------------

LOGITS = np.log(np.array([0.4, 0.3, 0.2, 0.06, 0.04], np.float32))


def drawn(sampling: Sampling, count: int = 4000) -> np.ndarray:
    sampler = Sampler(sampling)
    return np.bincount([sampler(LOGITS) for _ in range(count)], minlength=5) / count


@pytest.mark.parametrize(
    ("sampling", "shares"),
    [
        (Sampling(0, 1.0, 1.0, 3), [0.4, 0.3, 0.2, 0.06, 0.04]),
        (Sampling(2, 1.0, 1.0, 3), [4 / 7, 3 / 7, 0, 0, 0]),
        (Sampling(0, 0.65, 1.0, 3), [4 / 7, 3 / 7, 0, 0, 0]),
        (Sampling(0, 0.75, 1.0, 3), [4 / 9, 3 / 9, 2 / 9, 0, 0]),
        (Sampling(3, 1.0, 0.5, 3), [16 / 29, 9 / 29, 4 / 29, 0, 0]),
        (Sampling(0, 0.0, 1.0, 3), [1, 0, 0, 0, 0]),
        (Sampling(0, 1.0, 0.0, 3), [1, 0, 0, 0, 0]),
        (Sampling(1, 1.0, 9.0, 3), [1, 0, 0, 0, 0]),
    ],
)
def test_tokens_are_drawn_by_their_shares(sampling: Sampling, shares: list[float]) -> None:
    found = drawn(sampling)
    assert found == pytest.approx(shares, abs=0.03)
    assert not found[np.array(shares) == 0].any()


def test_a_seed_gives_the_same_answers_and_another_one_others(tmp_path: Path) -> None:
    sampler = field(1, 2) + field(3, 1.0) + field(4, 1.5) + field(5, 11)
    model = LanguageModel(Little().save(tmp_path, metadata(sampler=sampler)))
    assert model.metadata.sampling == Sampling(0, 1.0, 1.5, 11)
    first = model.generate("a", max_tokens=20)
    assert model.generate("a", max_tokens=20) == first
    assert model.generate("a", max_tokens=20, seed=12) != first
    assert model.generate("a", max_tokens=20, temperature=0).tokens == Little().greedy([97], 20)


def test_a_temperature_draws_where_the_bundle_says_nothing_of_sampling(tmp_path: Path) -> None:
    model = LanguageModel(Little().save(tmp_path))
    assert len({model.generate("a", max_tokens=20, temperature=3.0, seed=seed) for seed in range(3)}) == 3
    assert len({model.generate("a", max_tokens=20, top_p=0.99, seed=seed) for seed in range(3)}) > 1
    greedy = Little().greedy([97], 20)
    assert model.generate("a", max_tokens=20, seed=1).tokens == greedy
    assert model.generate("a", max_tokens=20, temperature=0, seed=1).tokens == greedy
    assert model.generate("a", max_tokens=20, temperature=3.0, top_k=1).tokens == greedy


def test_a_bundle_may_have_a_negative_seed(tmp_path: Path) -> None:
    sampler = field(1, 2) + field(3, 1.0) + field(4, 1.5) + field(5, (1 << 64) - 1)
    model = LanguageModel(Little().save(tmp_path, metadata(sampler=sampler)))
    assert model.generate("a", max_tokens=20) == model.generate("a", max_tokens=20, seed=1)


def test_suppressed_tokens_are_never_chosen(tmp_path: Path) -> None:
    little = Little()
    first = little.greedy([97], 1)[0]
    about = field(9, field(1, bytes([first])))
    model = LanguageModel(little.save(tmp_path, about))
    assert model.generate("a", max_tokens=1).tokens == [int(np.argsort(-little.logits([97]))[1])]
    assert Sampler(Sampling(0, 1.0, 1.0, 0), (0, 1, 2, 3, 999))(LOGITS) == 4


# Other files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [b"", b"1", b"12", b"1234567"])
def test_a_task_bundle_answers_alike_wherever_its_models_lie(odd: bytes, tmp_path: Path) -> None:
    little = Little()
    about = field(2, 300) + field(4, 2) + field(5, "</s>") + field(8, field(2, "<") + field(3, ">"))
    path = tmp_path / "little.task"
    path.write_bytes(
        task(
            {
                "padding" + odd.decode(): odd,
                "TF_LITE_PREFILL_DECODE": little.model,
                "TOKENIZER_MODEL": pieces(),
                "METADATA": about,
            }
        )
    )
    model = LanguageModel(path)
    assert model.render([{"role": "user", "content": "cat"}]) == "<cat>"
    tokens = model.encode("sat")
    assert tokens[0] == 2
    tokens = [token % 100 for token in tokens]
    model.encode = lambda prompt: tokens  # type: ignore[method-assign]  # the tokenizer has more tokens than the model
    assert model.generate("sat", max_tokens=6).tokens == little.greedy(tokens, 6)


def test_a_sentencepiece_tokenizer_streams_what_it_decodes(tmp_path: Path) -> None:
    from oplet_lm.tokenizer import TextStream

    model = LanguageModel(Little().save(tmp_path, metadata(), (SENTENCEPIECE, {}, pieces())))
    for text in ("the cat sat on the mat", "a dög - 猫 🐈!", " spaced  out"):
        tokens = model.tokenizer.encode(text)
        stream = TextStream(model.tokenizer)
        told = [stream.add([token]) for token in tokens]
        assert "".join(told) + stream.add([], last=True) == model.tokenizer.decode(tokens)
        assert not any(piece.endswith("\ufffd") for piece in told)


def growing(**steps: Any) -> Piece:
    """A tokenizer of Hugging Face's with further steps."""
    return HUGGINGFACE, {}, packed(json.dumps({**json.loads(characters()), **steps}).encode())


def ruled(rule: str) -> Piece:
    """A tokenizer of SentencePiece's that replaces x by a text."""
    import sentencepiece

    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write("78\t" + " ".join(f"{ord(c):x}" for c in rule) + "\n")
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["the cat sat"] * 20), model_writer=model, vocab_size=300, byte_fallback=True, hard_vocab_limit=False,
            minloglevel=2, num_threads=1, normalization_rule_tsv=rules.name,
        )  # fmt: skip
    return SENTENCEPIECE, {}, model.getvalue()


TENFOLD = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}
GROWING: dict[str, Callable[[], Piece]] = {
    "replaced again and again": lambda: growing(normalizer={"type": "Sequence", "normalizers": [TENFOLD] * 12}),
    "decoded again and again": lambda: growing(decoder={"type": "Sequence", "decoders": [TENFOLD] * 12}),
    "prepended": lambda: growing(normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "b" * 1000}] * 3}),
    "bytes of bytes": lambda: growing(
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}] * 20}
    ),
    "a long rule": lambda: ruled("y" * 20_000),
}  # fmt: skip


@pytest.mark.parametrize("case", GROWING)
def test_a_tokenizer_that_may_make_gigabytes_of_a_text_is_refused_before_it_does(case: str, tmp_path: Path) -> None:
    model = LanguageModel(Little().save(tmp_path, tokenizer=GROWING[case]()))
    with pytest.raises(LimitError, match=r"The tokenizer may take memory for \d+ characters of \d+; 33554432 are taken at most"):
        model.tokenizer.decode(model.tokenizer.encode("x" * 2000))


def test_a_text_that_takes_a_tokenizer_gigabytes_is_refused(tmp_path: Path) -> None:
    tokenizer = LanguageModel(Little().save(tmp_path)).tokenizer
    assert len(tokenizer.encode("x" * (1 << 16))) == 1 << 16
    with pytest.raises(LimitError, match=r"The tokenizer may take memory for \d+ characters of 5242880"):
        tokenizer.encode("x" * (5 << 20))


def test_a_tokenizer_neither_cuts_nor_pads_nor_repeats_a_text(tmp_path: Path) -> None:
    padding = {"strategy": {"Fixed": 1 << 40}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}  # fmt: skip
    cut = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    repeated = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 9,
        "pair": [],
        "special_tokens": {},
    }
    tokenizer = growing(padding=padding, truncation=cut, post_processor=repeated)
    assert LanguageModel(Little().save(tmp_path, tokenizer=tokenizer)).encode("abcd") == [*b"abcd"]


def test_a_bundle_without_what_is_needed_says_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "less.litertlm"
    path.write_bytes(litertlm([(METADATA, {}, metadata("x"))]))
    with pytest.raises(ModelError, match="has no tokenizer"):
        LanguageModel(path)
    path.write_bytes(litertlm([(HUGGINGFACE, {}, packed(characters()))]))
    with pytest.raises(ModelError, match="has no model 'tf_lite_prefill_decode'; its models are none"):
        LanguageModel(path)
    path.write_bytes(
        litertlm([(HUGGINGFACE, {}, packed(characters())), (MODEL, {"model_type": "tf_lite_prefill_decode"}, Little().lookup())])
    )
    with pytest.raises(ModelError, match="has no signature 'decode'; it has embed_8, embed_1"):
        LanguageModel(path)
    path.write_bytes(litertlm(Little(embedder=True).pieces()[:-1]))
    with pytest.raises(ModelError, match="takes 'embeddings', which no part of the bundle gives; run it with LiteRT-LM"):
        LanguageModel(path)


@pytest.mark.parametrize(("package", "tokenizer"), [("tokenizers", HUGGINGFACE), ("sentencepiece", SENTENCEPIECE)])
def test_a_tokenizer_s_package_that_is_missing_is_named(
    package: str, tokenizer: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Little().save(tmp_path, metadata(), (tokenizer, {}, pieces() if package == "sentencepiece" else packed(characters())))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StateError, match=rf"cannot be imported: .*; pip install {package}\."):
        LanguageModel(path)
