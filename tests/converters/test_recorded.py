"""What converters wrote that are not installed where the tests run: recorded with LiteRT's answers, graded on oplet's engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cases import read_all
from .engines import available
from .explained import EXPLAINED
from .record import RECORDED
from .sweeping import sweep

ZIPS = sorted(RECORDED.glob("*.zip"))


def _cases(path: Path) -> list[str]:
    return [case.name for case in read_all(path)]


def test_functions_of_jax_answer_as_litert_does() -> None:
    found = sweep(read_all(RECORDED / "jax_nets.zip"), ["numpy"])
    assert not found.wrong, "\n".join(found.wrong)


@pytest.mark.sweep
def test_functions_of_pytorch_answer_as_litert_does() -> None:
    found = sweep(read_all(RECORDED / "torch_functions.zip"), ["numpy"])
    assert not found.wrong, "\n".join(found.wrong)


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ["numpy", "compiled", "litert", "openvino"])
@pytest.mark.parametrize("path", ZIPS, ids=lambda path: path.stem)
def test_recorded_models_answer_as_litert_does(path: Path, engine: str) -> None:
    if not available(engine):
        pytest.skip(f"{engine} is not installed")
    found = sweep(read_all(path), [engine])
    assert not found.wrong, "\n".join(found.wrong)


def test_every_explained_model_of_the_recordings_is_there() -> None:
    names = {name for path in ZIPS for name in _cases(path)}
    assert {name for name in EXPLAINED if not name.startswith("keras-")} <= names
