"""Fixtures of the tests that hold the engine against LiteRT."""

from __future__ import annotations

import pytest

__all__ = ["engine"]

#: The packages whose kernels run: numpy's alone, and the compiled ones with them.
ENGINES = {"numpy": ["builtin_ops"], "compiled": ["builtin_ops", "compiled_ops"]}


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> list[str]:
    """The packages whose kernels run, in turn."""
    if request.param == "compiled":
        pytest.importorskip("oplet_compiled_ops")
    return ENGINES[request.param]
