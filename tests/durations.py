"""A pytest plugin: what each test took is kept in a file, and where the minutes went is told by room and kind."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest
from tests.kinds import KINDS, kind_of, room_of

__all__ = ["Durations", "table"]

#: Rooms that took less than so many seconds stand in one line.
_LITTLE = 6.0


class Took(NamedTuple):
    """What a test took.

    Attributes:
        seconds: by the clock, with fixtures.
        processor: of processors, in this process and in children that ended meanwhile.
    """

    room: str
    kind: str
    seconds: float
    processor: float


def table(took: list[Took]) -> list[str]:
    """Return lines that say where the minutes went: rooms with their kinds, the longest first."""
    rooms: dict[str, list[Took]] = {}
    for each in took:
        rooms.setdefault(each.room, []).append(each)
    ordered = sorted(rooms, key=lambda room: -sum(each.seconds for each in rooms[room]))
    little = [room for room in ordered if sum(each.seconds for each in rooms[room]) < _LITTLE]
    lines = [("room", *(f"{kind}s" for kind in KINDS), "minutes", "of processors")]
    for room in ordered:
        if room not in little:
            lines.append(_line(room, rooms[room]))
    if little:
        lines.append(_line(f"{len(little)} more", [each for room in little for each in rooms[room]]))
    lines.append(_line("all", took))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return ["  ".join(text.rjust(width) if at else text.ljust(width) for at, (text, width) in enumerate(zip(line, widths))).rstrip() for line in lines]  # fmt: skip


def _line(name: str, took: list[Took]) -> tuple[str, ...]:
    cells = []
    for kind in KINDS:
        some = [each.seconds for each in took if each.kind == kind]
        cells.append(f"{sum(some) / 60:.1f} ({len(some)})" if some else "-")
    return (name, *cells, f"{sum(t.seconds for t in took) / 60:.1f}", f"{sum(t.processor for t in took) / 60:.1f}")


def _processor() -> float:
    """Return the seconds of processors that this process and its ended children took."""
    return sum(os.times()[:4])


class Meter:
    """Adds to reports what tests took. Registered where tests run."""

    def __init__(self) -> None:
        self._before = _processor()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._before = _processor()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = _processor()
        report.kind, report.processor = kind_of(item), now - self._before  # type: ignore[attr-defined]
        self._before = now
        return report


class Durations:
    """Writes the file and tells the table. Registered where the results come together."""

    def __init__(self, path: Path, steps: list[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = path.open("w", encoding="utf-8")
        self._path = path
        self._steps = [(name, int(seconds)) for name, _, seconds in (step.partition("=") for step in steps)]
        self._began = time.monotonic()
        self._first = 0.0
        self._open: dict[str, list[Any]] = {}
        self._took: list[Took] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._first = self._first or time.monotonic() - self._began
        reports = self._open.setdefault(report.nodeid, [])
        reports.append(report)
        if report.when == "teardown":
            del self._open[report.nodeid]
            self._write(report.nodeid, reports)

    def _write(self, nodeid: str, reports: list[Any]) -> None:
        took = Took(
            room_of(nodeid),
            reports[-1].kind,
            sum(report.duration for report in reports),
            sum(report.processor for report in reports),
        )
        self._took.append(took)
        outcomes = {report.outcome for report in reports}
        outcome = next(name for name in ("failed", "skipped", "passed") if name in outcomes)
        line = {"id": nodeid, "outcome": outcome, **took._asdict()}
        line |= {"seconds": round(took.seconds, 4), "processor": round(took.processor, 4)}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def pytest_sessionfinish(self) -> None:
        self._file.close()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._took:
            return
        terminalreporter.section("where the minutes went, in minutes of test processes (and tests)")
        for line in table(self._took):
            terminalreporter.line(line)
        whole = (time.monotonic() - self._began) / 60
        if self._steps:
            before = ", ".join(f"{name} {seconds / 60:.1f}" for name, seconds in self._steps)
            terminalreporter.line(f"{sum(seconds for _, seconds in self._steps) / 60:.1f} minutes before the tests: {before}")
        terminalreporter.line(
            f"{whole:.1f} minutes by the clock, {self._first / 60:.1f} of them before the first test; each test: {self._path}"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kinds", "kinds of tests")
    group.addoption(
        "--took", metavar="STEP=SECONDS", action="append", default=[], help="what was done before, to be told with it"
    )
    group.addoption(
        "--durations-log", metavar="FILE", help="write what each test took as JSON lines, and tell where the minutes went"
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("durations_log")
    if path is None:
        return
    config.pluginmanager.register(Meter())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config.rootpath / path, config.getoption("took")))
