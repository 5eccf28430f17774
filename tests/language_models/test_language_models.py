"""Small language models with int4 weights in blocks write what they write in LiteRT, with its default delegate, XNNPACK.

`language_models/make.py` made them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from oplet import Interpreter

FOLDER = Path(__file__).parent
MODELS = sorted(path.stem for path in FOLDER.glob("*.tflite"))
ENGINES = {"numpy": ["builtin_ops"], "compiled": ["builtin_ops", "compiled_ops"]}
STEPS = 50


class Text(NamedTuple):
    """What a model writes: its tokens, the logits of each, and its cache in the end."""

    tokens: list[int]
    logits: np.ndarray[Any, Any]
    cache: dict[str, np.ndarray[Any, Any]]


def write(interpreter: Any, read: list[int] | None = None) -> Text:
    """Prefill 8 tokens, then decode 50 more, each time the likeliest; the cache goes out and in again.

    Args:
        interpreter: runs the model.
        read: the tokens to go on with in place of the likeliest ones.
    """
    prefill, decode = interpreter.get_signature_runner("prefill_8"), interpreter.get_signature_runner("decode")
    details = prefill.get_input_details()
    cache = {name: np.zeros(d["shape"], d["dtype"]) for name, d in details.items() if name.startswith("kv_")}
    prompt = np.random.default_rng(1).integers(1, 128, (1, 8)).astype(np.int32)
    answer = prefill(tokens=prompt, input_pos=np.arange(8, dtype=np.int32), **cache)
    tokens, logits, token = [], [], 5
    for position in range(8, 8 + STEPS):
        cache = {name: np.array(answer[name]) for name in cache}
        answer = decode(tokens=np.int32([[token]]), input_pos=np.int32([position]), **cache)
        logits.append(np.array(answer["logits"]).ravel())
        token = int(logits[-1].argmax())
        tokens.append(token)
        if read is not None:
            token = read[len(tokens) - 1]
    return Text(tokens, np.array(logits), {name: np.array(answer[name]) for name in cache})


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> tuple[Path, Text]:
    """A model, and what LiteRT writes with it."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    path = FOLDER / f"{request.param}.tflite"
    return path, write(litert.Interpreter(model_path=str(path)))


@pytest.mark.parametrize("engine", list(ENGINES))
def test_fifty_tokens_after_a_prompt_are_those_of_litert(model: tuple[Path, Text], engine: str) -> None:
    if engine == "compiled":
        pytest.importorskip("oplet_compiled_ops")
    path, expected = model
    # Both read the same text: after a tie that they decide otherwise, they would write about other things.
    found = write(Interpreter(model_path=str(path), plugins=ENGINES[engine]), expected.tokens)
    # A last bit may put a value between two steps on the other side, once in a while; from there on values are a step apart. On
    # processors without AVX-512 LiteRT sums in another order.
    allowed = 0.05 * np.abs(expected.logits).max()
    assert np.abs(found.logits - expected.logits).max() <= allowed
    ties = [row[mine] >= row.max() - allowed for row, mine in zip(expected.logits, found.tokens)]
    assert all(ties)
    assert sum(mine != its for mine, its in zip(found.tokens, expected.tokens)) <= 3
    assert found.cache.keys() == expected.cache.keys()
    for name, values in expected.cache.items():
        assert np.abs(found.cache[name] - values).max() <= 0.05 * np.abs(values).max(), name


def test_there_are_models_of_several_families() -> None:
    assert {name.split("_")[0] for name in MODELS} >= {"gemma", "gemma3", "llama"}
