from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oplet.plugins.manager import default_manager
from oplet.plugins.selection import PREFER_VARIABLE
from oplet_testing import litert_interpreter, run_op


@pytest.fixture(autouse=True, scope="module")
def _these_kernels() -> Iterator[None]:
    """This package's kernels serve, whichever packages are installed that go before it."""
    before = os.environ.get(PREFER_VARIABLE)
    os.environ[PREFER_VARIABLE] = "oplet-builtin-ops"
    default_manager.cache_clear()
    yield
    if before is None:
        del os.environ[PREFER_VARIABLE]
    else:
        os.environ[PREFER_VARIABLE] = before
    default_manager.cache_clear()


@pytest.fixture(scope="session")
def litert() -> Callable[..., list[Any]]:
    """`litert(model, *feeds)` runs a model on LiteRT's reference kernels, or on others that are named; None are its own choice."""
    litert_interpreter()  # the test is skipped where LiteRT is missing

    def run(model: bytes, *feeds: Any, kernels: str | None = "BUILTIN_REF") -> list[Any]:
        return run_op(model, *feeds, interpreter=litert_interpreter(kernels))

    return run
