"""docs/fusing-a-function.md, done as it is written, in virtual environments of its own."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.tools.tests.scaffolding.followed_pages import blocks, follow, with_wheels
from tests.places import ROOT

from oplet import Interpreter, MutableOpResolver
from oplet_testing import OpContract

PAGE = ROOT / "docs" / "fusing-a-function.md"
FILES = {name: text for name, text in blocks(PAGE) if name != "sh"}
#: TensorFlow is large: it is taken from here.
TRAINING = {
    "python3 -m venv training": ":",
    "training/bin/pip install tensorflow-cpu": ":",
    "training/bin/python": f'"{sys.executable}"',
}


def code_of(name: str) -> dict[str, Any]:
    """What a file of the page binds."""
    found: dict[str, Any] = {"__name__": "page"}
    exec(compile(FILES[name], f"{PAGE}: {name}", "exec"), found)
    return found


KERNEL = code_of("src/oplet_acme_rms_norm_op/kernel.py")["REGISTRATION"]
TESTS = code_of("tests/test_acme_rms_norm.py")


def resolver() -> MutableOpResolver:
    made = MutableOpResolver()
    made.add_custom("acme.rms_norm", KERNEL)
    made.add_composite("acme.rms_norm", KERNEL)
    return made


class TestTheKernel(TESTS["TestContract"], OpContract):  # type: ignore[misc]
    op_resolver = resolver()


def test_the_page_s_composite_has_one_answer_with_and_without_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code_of("write_composite.py")
    feeds = {"x": np.arange(40, dtype=np.float32).reshape(5, 8), "w": np.linspace(0.5, 2, 8, dtype=np.float32)}
    served, alone = Interpreter("composite.tflite", op_resolver=resolver()), Interpreter("composite.tflite")
    given, decomposed = (each.get_signature_runner()(**feeds)["y"] for each in (served, alone))
    np.testing.assert_allclose(given, decomposed, rtol=1e-5)
    assert served.explain()[0].why == "acme.rms_norm version 0: registered"
    assert "its decomposition runs" in alone.explain()[0].why


@pytest.mark.skipif(importlib.util.find_spec("litert_torch") is None, reason="litert-torch is not installed")
def test_litert_torch_writes_the_page_s_composite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code_of("convert_torch.py")
    with np.load("torch_answers.npz") as answers:
        [y] = Interpreter("composite.tflite", op_resolver=resolver()).get_signature_runner()(args_0=answers["x"]).values()
        np.testing.assert_allclose(y, answers["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.environment
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install -r requirements-tensorflow.txt")
def test_from_a_function_of_tensorflow_to_a_package_that_serves_it(tmp_path: Path) -> None:
    output = follow(PAGE, tmp_path, {**TRAINING, **with_wheels(PAGE)})
    assert "acme.rms_norm (custom)" in output
    [passed] = re.findall(r"(\d+) passed", output)
    assert int(passed) > 10
    assert not re.search(r"\d+ (failed|errors?|skipped)", output)
    assert "as TensorFlow: (5, 8)" in output
    assert "acme.rms_norm version 0: only provider\n" in output
    assert "acme.rms_norm version 0: nobody registered it; its decomposition runs" in output
