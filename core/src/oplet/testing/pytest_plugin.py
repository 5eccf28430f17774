"""Fixtures for tests of ops and delegates; pytest finds them wherever oplet is installed.

Nothing of oplet is imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from oplet.plugins.manager import PluginManager

__all__ = ["isolated_plugins", "op_tester"]


@pytest.fixture
def op_tester() -> Callable[..., Any]:
    """Builds a model of one op, runs it on arrays and gives its outputs: `oplet.testing.call_op`.

    [y] = op_tester("Atan", [x], [Spec("float32", x.shape)])
    """
    from oplet.testing.one_op import call_op

    return call_op


@pytest.fixture
def isolated_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PluginManager]]:
    """During the test no installed plugin is there, but those that the test asks for by name.

    `isolated_plugins("oplet-atan-op")` switches on that one, also for interpreters that are given no manager, and
    returns the manager. The environment's own switches do not matter meanwhile.
    """
    from oplet.plugins.manager import PluginManager, default_manager

    def allow(*names: str, **arguments: Any) -> PluginManager:
        monkeypatch.setenv("OPLET_PLUGINS", ",".join(names))
        default_manager.cache_clear()
        return PluginManager(load=names, **arguments)

    for variable in ("OPLET_DISABLE_PLUGINS", "OPLET_PREFER"):
        monkeypatch.delenv(variable, raising=False)
    allow()
    yield allow
    default_manager.cache_clear()
