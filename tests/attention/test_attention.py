"""Attention as litert-torch writes it, against PyTorch's recorded answers: `attention/make.py` made the models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oplet import Interpreter, load_delegate

MODELS = Path(__file__).parent
#: Single composites, and language models with key caches.
SINGLE = sorted(path.stem for path in MODELS.glob("*.npz") if "_" in path.stem)
LANGUAGE = sorted(path.stem for path in MODELS.glob("*.npz") if "_" not in path.stem)
#: Where LiteRT's default, XNNPACK, fails, or leaves out the causal mask that the decomposition has.
XNNPACK_DIFFERS = ("attention_batch", "causal_1", "causal_4")

Array = NDArray[Any]


def delegated(name: str) -> Callable[..., Any]:
    return lambda **arguments: Interpreter(**arguments, experimental_delegates=[load_delegate(name)])


ENGINES: dict[str, Callable[..., Any]] = {
    "numpy": lambda **arguments: Interpreter(**arguments, plugins=["oplet-builtin-ops"]),
    "two threads": lambda **arguments: Interpreter(**arguments, plugins=["oplet-builtin-ops"], num_threads=2),
    "installed": Interpreter,
    "litert": delegated("litert"),
    "openvino": delegated("openvino"),
}
NEEDS = {"litert": "oplet_litert_delegate", "openvino": "oplet_openvino_delegate", "installed": "oplet_compiled_ops"}


@cache
def recorded(name: str) -> dict[str, Array]:
    with np.load(MODELS / f"{name}.npz") as arrays:
        return dict(arrays)


def opened(engine: str, name: str) -> Any:
    if engine in NEEDS:
        pytest.importorskip(NEEDS[engine])
    return ENGINES[engine](model_content=recorded(name)["model"].tobytes())


def answer(interpreter: Any, name: str) -> Array:
    arguments = {key: value for key, value in recorded(name).items() if key.startswith("args_")}
    (output,) = interpreter.get_signature_runner()(**arguments).values()
    return np.asarray(output)


def test_the_models_are_there() -> None:
    assert (len(SINGLE), LANGUAGE) == (19, ["gemma1", "gemma2", "gemma3", "llama"])


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("engine", ENGINES)
def test_attention_equals_pytorch(engine: str, name: str) -> None:
    interpreter = opened(engine, name)
    np.testing.assert_allclose(answer(interpreter, name), recorded(name)["output"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SINGLE)
def test_the_recorded_answers_are_xnnpack_s_but_where_it_is_wrong(name: str) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    try:
        output = answer(litert.Interpreter(model_content=recorded(name)["model"].tobytes()), name)
    except RuntimeError:
        output = np.full_like(recorded(name)["output"], np.inf)
    assert np.allclose(output, recorded(name)["output"], rtol=1e-5, atol=1e-5) is (name not in XNNPACK_DIFFERS)


@pytest.mark.parametrize("name", ["attention_4_1_plain", "attention_4_2_capped", "causal_1", "unmasked_1"])
def test_explain_names_the_kernel_of_the_composite(name: str) -> None:
    interpreter = opened("numpy", name)
    interpreter.allocate_tensors()
    report = interpreter.explain()[0]
    assert (report.op, report.composite) == ("STABLEHLO_COMPOSITE", "odml.scaled_dot_product_attention")
    assert report.why == "odml.scaled_dot_product_attention version 0: only provider"


@pytest.mark.parametrize("name", SINGLE)
def test_litert_gets_the_composites_that_xnnpack_computes_as_pytorch_does(name: str) -> None:
    interpreter = opened("litert", name)
    interpreter.allocate_tensors()
    reports = [report for report in interpreter.explain() if report.subgraph == 0]
    assert [report.op for report in reports] == (
        ["litert"] if name not in XNNPACK_DIFFERS and not name.startswith("unmasked") else ["STABLEHLO_COMPOSITE"]
    )
    assert all(report.subgraph == 0 for report in interpreter.delegation_reports())


def converse(interpreter: Any, name: str) -> dict[str, Array]:
    """A prompt, and tokens one by one after it, each the likeliest; logits and caches as they are recorded."""
    answers = recorded(name)
    prefill, decode = interpreter.get_signature_runner("prefill_4"), interpreter.get_signature_runner("decode")
    cache = {
        key: np.zeros(detail["shape"], np.float32) for key, detail in prefill.get_input_details().items() if key.startswith("kv_")
    }
    found: dict[str, Array] = {}
    result = prefill(tokens=answers["prompt"], input_pos=np.arange(4, dtype=np.int32), **cache)
    token = answers["logits_0"][:, -1:].argmax(-1).astype(np.int32)  # prefill gives no logits
    for step in range(5):
        if step:
            result = decode(tokens=token, input_pos=np.array([3 + step], np.int32), **cache)
            found[f"logits_{step}"] = result["logits"]
            token = result["logits"][:, -1:].argmax(-1).astype(np.int32)
        cache = {key: np.array(value) for key, value in result.items() if key.startswith("kv_")}
        for key, value in cache.items():
            found[f"{key.removeprefix('kv_cache_')}_{step}"] = value
    return found


@pytest.mark.parametrize("name", LANGUAGE)
@pytest.mark.parametrize("engine", ENGINES)
def test_language_models_keep_pytorch_s_key_caches_and_say_its_words(engine: str, name: str) -> None:
    found = converse(opened(engine, name), name)
    assert len(found) == 4 + 5 * 4
    for key, value in found.items():
        np.testing.assert_allclose(value, recorded(name)[key], rtol=1e-5, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", LANGUAGE)
def test_the_recorded_key_caches_are_xnnpack_s(name: str) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    for key, value in converse(litert.Interpreter(model_content=recorded(name)["model"].tobytes()), name).items():
        np.testing.assert_allclose(value, recorded(name)[key], rtol=1e-5, atol=1e-5, err_msg=key)
