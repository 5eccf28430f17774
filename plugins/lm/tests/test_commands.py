"""The commands: `oplet chat`, and `inspect` and `doctor` of bundles."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plugins.lm.tests.makers import Little, field, litertlm, metadata, pieces, task

TEMPLATE = "{% for m in messages %}[{{ m.content }}]{% endfor %}"


def text(tokens: list[int]) -> str:
    return "".join(c if (c := chr(token)).isprintable() or c in "\n\t" else "\ufffd" for token in tokens)


def test_chat_answers_one_prompt(oplet: Callable[..., Any], tmp_path: Path) -> None:
    little = Little()
    path = little.save(tmp_path, metadata(template=TEMPLATE))
    told = oplet("chat", path, "--prompt", "hi", "--max-tokens", "5")
    assert told.code == 0
    assert told.out == text(little.greedy([ord(c) for c in "[hi]"], 5)) + "\n"
    assert oplet("chat", path, "--prompt", "hi", "--raw", "--max-tokens", "5").out == text(little.greedy([104, 105], 5)) + "\n"


def test_chat_goes_on_with_a_conversation_until_the_input_ends(
    oplet: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = Little(context=128)
    path = little.save(tmp_path, metadata(template=TEMPLATE))
    monkeypatch.setattr(sys, "stdin", io.StringIO("hi\nso\n"))
    told = oplet("chat", path, "--system", "be", "--max-tokens", "2")
    first = little.greedy([ord(c) for c in "[be][hi]"], 2)
    whole = "[be][hi][" + "".join(map(chr, first)) + "][so]"
    assert told.out == text(first) + "\n" + text(little.greedy([ord(c) for c in whole], 2)) + "\n"


def test_chat_ends_in_one_sentence_where_the_context_is_full(oplet: Callable[..., Any], tmp_path: Path) -> None:
    told = oplet("chat", Little().save(tmp_path), "--raw", "--prompt", "hi")
    assert told.code == 1
    assert "The context of 32 tokens is full before the answer ends; begin a new conversation." in " ".join(told.err.split())
    told = oplet("chat", Little().save(tmp_path), "--prompt", "hi")
    assert told.code == 1
    assert "has no chat template; give the prompt as a text." in " ".join(told.err.split())


def test_inspect_shows_a_bundle_and_its_models(oplet: Callable[..., Any], tmp_path: Path) -> None:
    little = Little(external=True, embedder=True)
    path = little.save(tmp_path, metadata("</s>", start=2, most=20))
    told = oplet("inspect", path).out
    for words in (
        "LiteRT-LM file (.litertlm) of version 1.7.0",
        "TFLiteWeights",
        "'</s>'",
        "prefill_16",
        "embed_8",
        "DYNAMIC_UPDATE_SLICE",
    ):
        assert words in told
    found = json.loads(oplet("inspect", path, "--json").out)
    assert found["kind"].startswith("LiteRT-LM file")
    assert found["about"]["tokens of context"] == 20
    assert set(found["models"]) == {"tf_lite_prefill_decode", "tf_lite_embedder"}
    assert [part["bytes"] for part in found["parts"] if part["kind"] == "TFLiteWeights"] == [len(little.weights)]


def test_doctor_examines_the_models_of_a_bundle(oplet: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "little.task"
    path.write_bytes(task({"TF_LITE_PREFILL_DECODE": Little().model, "TOKENIZER_MODEL": pieces(), "METADATA": field(4, 2)}))
    told = oplet("doctor", path)
    assert told.code == 0
    assert "operators are served" in told.out
    found = json.loads(oplet("doctor", path, "--json").out)
    assert {row["op"] for row in found["tf_lite_prefill_decode"]} >= {"SOFTMAX", "BATCH_MATMUL"}
    lacking = oplet("doctor", path, "-p", "no:oplet-builtin-ops")
    assert lacking.code == 1
    assert "are missing" in lacking.out


def test_a_damaged_bundle_and_one_that_nobody_opens_are_refused(oplet: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "damaged.litertlm"
    path.write_bytes(litertlm([(1, {}, b"x")])[:5000])
    for command in ("inspect", "doctor"):
        told = oplet(command, path)
        assert told.code == 1
        assert "is damaged" in told.err
        assert "oplet-lm runs it" in " ".join(oplet(command, path, "-p", "no:oplet-lm").err.split())
