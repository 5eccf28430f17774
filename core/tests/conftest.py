"""Fixtures of the core's tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oplet import PluginManager
from oplet_testing.distributions import fake_distribution, installed


class PluginSite:
    """A site-packages folder of made-up plugins, the only ones that its managers see."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self._stack = stack

    def add(self, distribution: str, version: str = "1.0", *, source: str, name: str = "", module: str = "") -> None:
        """Install a plugin of one module; its name and module follow from the distribution's unless given."""
        module = module or distribution.replace("-", "_")
        fake_distribution(self.path, distribution, version, {name or distribution: module}, {module: source})

    def add_op(
        self, distribution: str, version: str = "1.0", *, op: str = "Atan", versions: str = "1, 1", head: str = "", **more: str
    ) -> None:
        """Install a plugin that serves one op: a builtin if its name is in upper case."""
        add = "add_builtin" if op.isupper() else "add_custom"
        source = f"""
            from oplet import Registration, hookimpl
            {head}
            @hookimpl
            def register_ops(resolver):
                resolver.{add}("{op}", Registration(invoke=print), {versions})
            """
        self.add(distribution, version, source=source, **more)

    def manager(self, **arguments: Any) -> PluginManager:
        """A manager of what was installed so far."""
        return PluginManager(entry_points=self._stack.enter_context(installed(self.path)), **arguments)


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines are held against a clock that goes on by a millisecond with each look: a busy machine makes nothing late."""
    looks = itertools.count()
    monkeypatch.setattr("oplet.runtime.execution.session.time", SimpleNamespace(monotonic=lambda: next(looks) / 1000))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginSite]:
    """Where a test installs its plugins; nothing of it stays."""
    for variable in ("OPLET_PLUGINS", "OPLET_DISABLE_PLUGINS", "OPLET_PREFER"):
        monkeypatch.delenv(variable, raising=False)
    with ExitStack() as stack:
        yield PluginSite(tmp_path / "site-packages", stack)
