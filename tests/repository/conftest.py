"""What the tests of the repository's files share: syntax trees, which no test of another room should carry along."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.syntax import forget

HERE = Path(__file__).parent


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let the trees go with the last of these tests that a process runs in a row."""
    if nextitem is None or HERE not in nextitem.path.parents:
        forget()
