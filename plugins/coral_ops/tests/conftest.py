"""What PoseNet and BodyPix give for drawn persons, and nodes that decode it with this package alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oplet import MutableOpResolver
from oplet_coral_ops import register_ops
from oplet_testing import run_op


@pytest.fixture(scope="session")
def run() -> Callable[..., list[Any]]:
    """Run a model once with this package alone: `run(model, *feeds)`."""
    resolver = MutableOpResolver()
    register_ops(resolver)

    def run(model: bytes, *feeds: Any, **arguments: Any) -> list[Any]:
        return run_op(model, *feeds, op_resolver=resolver, plugins=[], **arguments)

    return run
