from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oplet.testing import run_op


@pytest.fixture(scope="session")
def litert() -> Callable[..., list[Any]]:
    """`litert(model, *feeds)` runs a model on LiteRT's reference kernels; the test is skipped where LiteRT is missing."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    arguments = {"experimental_op_resolver_type": interpreter.OpResolverType.BUILTIN_REF}

    def run(model: bytes, *feeds: Any) -> list[Any]:
        return run_op(model, *feeds, interpreter=interpreter.Interpreter, **arguments)

    return run
