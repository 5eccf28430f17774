"""Keras' layers and small nets in every scheme of TensorFlow's converter: made here, graded beside LiteRT's three ways.

TensorFlow works in a process of its own: it is large, and what it brings of TensorFlow Lite must not meet LiteRT's package.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.places import ROOT

from .cases import Case, read_all
from .engines import available
from .explained import EXPLAINED
from .oracle import Oracle, record
from .sweeping import sweep

pytest.importorskip("ai_edge_litert.interpreter")

pytestmark = [
    pytest.mark.sweep(together=True),
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install -r requirements-tensorflow.txt"),
]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Case]]:
    path = tmp_path_factory.mktemp("keras") / "keras.zip"
    command = [sys.executable, "-m", "tests.converters.make", "keras_nets", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    oracle = Oracle()
    yield [record(case, oracle) for case in read_all(path)]
    oracle.close()


def test_every_scheme_makes_models(cases: list[Case]) -> None:
    assert len(cases) > 110
    names = {case.name for case in cases}
    assert {name for name in EXPLAINED if name.startswith("keras-")} <= names


@pytest.mark.parametrize("engine", ["numpy", "compiled", "litert", "openvino"])
def test_keras_models_answer_as_litert_does(cases: list[Case], engine: str) -> None:
    if not available(engine):
        pytest.skip(f"{engine} is not installed")
    found = sweep(cases, [engine])
    assert not found.wrong, "\n".join(found.wrong)
