"""A pytest plugin: a run of all tests fails where a package of the repository had none that ran, and says which had."""

from __future__ import annotations

import importlib.metadata as metadata
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.kinds import part

__all__ = ["EveryPackage", "folders", "not_installed"]

#: What is asked for by all who ask for the tests of all packages: units alone, with sweeps, everything.
_WHOLE = ("", "not sweep and not environment", "not environment")


def folders(root: Path) -> list[str]:
    """The folders of the repository's packages: the core, and each plugin."""
    return ["core", *sorted(f"plugins/{path.parent.name}" for path in root.glob("plugins/*/pyproject.toml"))]


def not_installed(root: Path) -> list[str]:
    """The folders of packages that are not installed here."""
    found = []
    for folder in folders(root):
        path = root / folder / "pyproject.toml"
        name = re.search(r'^name = "(.+)"$', path.read_text("utf-8"), re.MULTILINE) if path.exists() else None
        try:
            if name:
                metadata.distribution(name[1])
        except metadata.PackageNotFoundError:
            found.append(folder)
    return found


class EveryPackage:
    """Counts tests by package. Registered where the results come together, not in the processes that run them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folders = folders(config.rootpath)
        self._ran: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._missing: list[str] = []
        self._left_out = not_installed(config.rootpath) if config.getoption("installed") else []

    @property
    def whole(self) -> bool:
        """All tests were asked for, but for sweeps and environments: neither paths nor names of tests were given."""
        option = self._config.option
        return (
            self._config.args_source is pytest.Config.ArgsSource.TESTPATHS
            and not option.keyword
            and not option.collectonly
            and not getattr(option, "lf", False)
            and option.markexpr in _WHOLE
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
        self._missing = [folder for folder in self._folders if not self._ran[folder] and folder not in self._left_out]
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

        for folder in self._left_out:
            terminalreporter.line(
                f"{folder}: not installed, and not tested; OPLET_REQUIREMENTS=requirements-dev.txt sh scripts/test.sh {folder} runs its tests"
            )
        for line in self._not_run():
            terminalreporter.line(line)

    def _not_run(self) -> list[str]:
        """What a run of this kind leaves out, and what runs it."""
        expression = self._config.option.markexpr
        lines = []
        if "not sweep" in expression:
            lines.append(
                "sweeps: not run; .ci/run runs a tenth of them, .ci/run all all of them, and pytest -m sweep PATH those of a room"
            )
        elif not part().whole:
            lines.append(f"sweeps: {part()}; .ci/run all runs all of them")
        if "not environment" in expression:
            lines.append(
                "tests that make environments: not run; .ci/run runs them after a change of packaging, .ci/run all always"
            )
        return lines

    def _folder(self, report: pytest.TestReport | pytest.CollectReport) -> str:
        parts = report.nodeid.split("/")
        return "/".join(parts[:2]) if parts[0] == "plugins" else parts[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("kinds", "kinds of tests").addoption(
        "--installed", action="store_true", help="leave out the tests of packages that are not installed, and say which these are"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("installed") or collection_path.parent != config.rootpath / "plugins":
        return None
    return True if f"plugins/{collection_path.name}" in not_installed(config.rootpath) else None


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(EveryPackage(config))
