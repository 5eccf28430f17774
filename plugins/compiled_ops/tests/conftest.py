from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet_testing import invoke

__all__ = ["agree", "answer"]


def answer(model: bytes, values: list[Any], plugins: list[str], threads: int = 1) -> list[Any]:
    """The outputs of the second run: the first leaves its traces in memory."""
    interpreter = Interpreter(model_content=model, plugins=plugins, num_threads=threads)
    invoke(interpreter, *values)
    return invoke(interpreter)


@pytest.fixture(autouse=True)
def short_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours are joined however long they take the first time: a garbage collection or a busy machine may make a node seem long."""
    monkeypatch.setattr("oplet.ops.serving.joining.LONGEST", 60.0)


@pytest.fixture(scope="session")
def agree() -> Callable[..., None]:
    """`agree(model, values)`: compiled and numpy kernels answer alike, integers bit for bit."""

    def check(model: bytes, values: list[Any], threads: int = 1) -> None:
        wanted = answer(model, values, ["oplet-builtin-ops"])
        got = answer(model, values, ["oplet-builtin-ops", "oplet-compiled-ops"], threads)
        for one, other in zip(got, wanted, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            if one.dtype.kind == "f":
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * max(1.0, float(np.abs(other).max(initial=0))))
            else:
                np.testing.assert_array_equal(one, other)

    return check
