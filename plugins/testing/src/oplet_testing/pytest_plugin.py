"""pytest fixtures for tests of ops and delegates; pytest finds them wherever oplet is installed.

oplet is imported when a test first uses a fixture, so that other projects' tests do not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from oplet import PluginManager

__all__ = ["isolated_plugins", "op_tester"]


@pytest.fixture
def op_tester() -> Callable[..., Any]:
    """Provide the function `oplet_testing.call_op`, which runs one op on arrays and returns its outputs.

    [y] = op_tester("Atan", [x], [Spec("float32", x.shape)])
    """
    from oplet_testing.one_op import call_op

    return call_op


@pytest.fixture
def isolated_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PluginManager]]:
    """Switch off all installed plugins during the test, except those that the test names.

    `isolated_plugins("oplet-atan-op")` switches that one on, also for interpreters that are given no manager, and returns the manager.
    Environment variables that select plugins are ignored meanwhile.
    """
    from oplet import PluginManager
    from oplet.toolkit import default_manager

    def allow(*names: str, **arguments: Any) -> PluginManager:
        monkeypatch.setenv("OPLET_PLUGINS", ",".join(names))
        default_manager.cache_clear()
        return PluginManager(load=names, **arguments)

    for variable in ("OPLET_DISABLE_PLUGINS", "OPLET_PREFER"):
        monkeypatch.delenv(variable, raising=False)
    allow()
    yield allow
    default_manager.cache_clear()
