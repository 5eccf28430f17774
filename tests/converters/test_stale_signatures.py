"""Signatures whose outputs are no outputs of the graph, as ai-edge-quantizer leaves them: oplet gives what was computed."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.converters.cases import Case, read

from oplet import Interpreter
from oplet_testing import litert_interpreter

Answers = list[dict[str, np.ndarray[Any, Any]]]


@pytest.fixture(scope="module")
def case() -> Case:
    with zipfile.ZipFile(Path(__file__).parent / "recorded" / "quantized_torch.zip") as archive:
        return read(archive, "quantized-torch_language-smollm-static8")


def run(interpreter: Any, case: Case) -> Answers:
    return [interpreter.get_signature_runner(step.signature)(**step.inputs) for step in case.steps]


def kept_by_litert(case: Case, resolver: str) -> Answers:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that keeping all tensors takes memory
        interpreter = litert_interpreter(resolver)(model_content=case.model, experimental_preserve_all_tensors=True)
    return run(interpreter, case)


def test_they_are_what_litert_s_reference_kernels_compute_where_it_keeps_all_tensors(case: Case) -> None:
    for ours, theirs in zip(run(Interpreter(model_content=case.model), case), kept_by_litert(case, "BUILTIN_REF")):
        for name in ("kv_cache_k_0", "kv_cache_v_0"):  # what follows attention differs: they run its faulty decomposition
            np.testing.assert_array_equal(ours[name], theirs[name])


def test_they_are_near_what_xnnpack_computes_where_litert_keeps_all_tensors(case: Case) -> None:
    for ours, theirs in zip(run(Interpreter(model_content=case.model), case), kept_by_litert(case, "AUTO")):
        assert ours.keys() == theirs.keys()
        for name, array in ours.items():
            assert np.abs(array.astype(int) - theirs[name].astype(int)).max() <= 5, name


def test_keeping_all_tensors_changes_nothing(case: Case) -> None:
    kept = Interpreter(model_content=case.model, experimental_preserve_all_tensors=True)
    for ours, theirs in zip(run(Interpreter(model_content=case.model), case), run(kept, case)):
        for name, array in ours.items():
            np.testing.assert_array_equal(array, theirs[name])
