"""The state of rooms that hold what compiled kernels answer; users see numpy's answers first, as all other tests do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

__all__ = ["compiled_first"]


@pytest.fixture(autouse=True, scope="module")
def compiled_first() -> Iterator[None]:
    """Kernels are compiled before a model's first answer. A room's conftest.py imports this fixture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPLET_COMPILE", "first")
        yield
