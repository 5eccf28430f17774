"""A pytest plugin: a run of all tests fails where a package of the repository had none that ran, and says which had."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

__all__ = ["EveryPackage", "folders"]


def folders(root: Path) -> list[str]:
    """The folders of the repository's packages: the core, and each plugin."""
    return ["core", *sorted(f"plugins/{path.parent.name}" for path in root.glob("plugins/*/pyproject.toml"))]


class EveryPackage:
    """Counts tests by package. Registered where the results come together, not in the processes that run them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folders = folders(config.rootpath)
        self._ran: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._missing: list[str] = []

    @property
    def whole(self) -> bool:
        """All tests were asked for, but for slow ones: neither paths nor names of tests were given."""
        option = self._config.option
        return (
            self._config.args_source is pytest.Config.ArgsSource.TESTPATHS
            and not option.keyword
            and not option.collectonly
            and not getattr(option, "lf", False)
            and option.markexpr in ("", "not slow", "slow or not slow")
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self._skipped[self._folder(report)] += 1
        elif report.when == "call":
            self._ran[self._folder(report)] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._skipped[self._folder(report)] += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        done = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
        if not self.whole or exitstatus not in done or session.shouldstop or session.shouldfail:
            return
        self._missing = [folder for folder in self._folders if not self._ran[folder]]
        if self._missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.whole:
            return
        terminalreporter.section("packages whose tests ran")
        for folder in (*self._folders, "tests"):
            if self._ran[folder] or self._skipped[folder]:
                skipped = f", {self._skipped[folder]} skipped" if self._skipped[folder] else ""
                terminalreporter.line(f"{folder}: {self._ran[folder]}{skipped}")
        for folder in self._missing:
            terminalreporter.line(
                f"ERROR: no test of {folder} ran; install it with what it needs: pip install -r requirements-dev.txt", red=True
            )

    def _folder(self, report: pytest.TestReport | pytest.CollectReport) -> str:
        parts = report.nodeid.split("/")
        return "/".join(parts[:2]) if parts[0] == "plugins" else parts[0]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(EveryPackage(config))
