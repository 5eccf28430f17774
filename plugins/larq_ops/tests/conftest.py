"""Nodes of one larq operator, run with this package alone."""

from __future__ import annotations

import io
import lzma
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plugins.larq_ops.tests.record_larq import DATA

from oplet import MutableOpResolver
from oplet_larq_ops import register_ops
from oplet_testing import run_op


@pytest.fixture(scope="session")
def resolver() -> MutableOpResolver:
    """This package's kernels and no others."""
    found = MutableOpResolver()
    register_ops(found)
    return found


@pytest.fixture(scope="session")
def run(resolver: MutableOpResolver) -> Callable[..., list[Any]]:
    """Run a model once with this package alone: `run(model, *feeds)`."""

    def run(model: bytes, *feeds: Any, **arguments: Any) -> list[Any]:
        return run_op(model, *feeds, op_resolver=resolver, plugins=[], **arguments)

    return run


@pytest.fixture(scope="session")
def recorded() -> dict[str, Any]:
    """What larq's own interpreter gave, by case."""
    with np.load(io.BytesIO(lzma.decompress(DATA.read_bytes()))) as file:
        return dict(file)
