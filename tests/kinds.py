"""A pytest plugin: tests are of three kinds, by marker, and of the sweeps a run takes a part that changes with the commit.

A test without a marker is a *unit*: it needs nothing but the packages and runs in less than a second or a few. A `sweep` goes over
recorded or generated cases: every run takes a tenth of them, chosen by the commit, and `--part all` takes all; where one fails, the end of the run names what runs it whole. An `environment` test
makes something to run in first: a virtual environment, a wheel, a cluster, a server, a browser, a compiled library.

A sweep is chosen by its id; those that share what takes minutes to make are marked `sweep(together=True)` and chosen by their file. One
that loops over cases inside is marked `sweep(cases=True)`, always runs, and asks `part()` which cases are its own; with `turns=3` as
well, as where every case runs in an emulator, it has its turn in one commit of three. Those that share or take turns run first.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

__all__ = ["KINDS", "FailedSweeps", "Part", "kind_of", "part", "room_of"]

T = TypeVar("T")

#: From the quickest kind on; a test with several markers is of the last.
KINDS = ("unit", "sweep", "environment")
#: Fixtures that start something; a test that asks for one is an environment, marked or not.
_STARTED = {"browser", "cluster", "server"}
#: A run takes one case of so many.
PARTS = 10


class Part(NamedTuple):
    """One of several equal parts of all cases.

    Attributes:
        number: which one, from 0.
        of: how many there are; 1 is everything.
        operators: operators whose cases belong to this part, whichever they are.
        paths: what the paths of tests begin with that belong to it as well.
        turn: a number of the commit's that says whose turn it is; None where all sweeps have theirs.
    """

    number: int = 0
    of: int = 1
    operators: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    turn: int | None = None

    @classmethod
    def of_commit(cls) -> Part:
        """Return the part that the commit chooses, with all that concerns what it changes."""
        from scripts.changes import changed_operators, changed_sweeps, commit

        turn, number = divmod(int(commit() or "0", 16), PARTS)
        return cls(number, PARTS, changed_operators(), changed_sweeps(), turn)

    @classmethod
    def parse(cls, text: str) -> Part:
        """Return what "3/10" (the third of ten) or "all" says."""
        if text == "all":
            return cls()
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise pytest.UsageError(f"--part is N/M, the Nth of M parts, or all, not {text!r}.")
        return cls(int(match[1]) - 1, int(match[2]))

    @property
    def whole(self) -> bool:
        """Whether all cases belong to it."""
        return self.of == 1

    def holds(self, name: str, operators: Iterable[str] = ()) -> bool:
        """Return whether a case belongs to this part, by its name, or for its operators."""
        return zlib.crc32(name.encode()) % self.of == self.number or not self.operators.isdisjoint(operators)

    def has_turn(self, name: str, turns: int) -> bool:
        """Return whether a sweep that has its turn in one commit of so many has it in this one."""
        return self.turn is None or (zlib.crc32(name.encode()) + self.turn) % turns == 0

    def among(self, cases: Iterable[T], name: Callable[[T], str] = str) -> Iterator[T]:
        """Return the cases of this part."""
        return (case for case in cases if self.holds(name(case)))

    def least(self, count: int) -> int:
        """Return how many of so many cases there are in any part: a bit fewer than its share, as names fall as they will."""
        return count if self.whole else max(0, round(count / self.of - 3 * (count / self.of) ** 0.5))

    def __str__(self) -> str:
        concerned = [*sorted(self.operators), *self.paths]
        more = f" and all of {', '.join(concerned)}" if concerned else ""
        return "all cases" if self.whole else f"part {self.number + 1} of {self.of}{more}"


_chosen = Part()


def part() -> Part:
    """Return the part that this run takes; everything outside pytest."""
    return _chosen


def kind_of(item: pytest.Item) -> str:
    """Return the kind of a test."""
    return next((kind for kind in reversed(KINDS) if item.get_closest_marker(kind)), "unit")


class FailedSweeps:
    """Names the sweeps that failed in a part, and what runs them whole. Registered where the results come together."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._names: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and "sweep" in report.keywords:
            self._names[report.nodeid.partition("[")[0]] = None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._names:
            terminalreporter.section("sweeps that failed in their part")
            terminalreporter.line(f'what runs them whole: python -m pytest -m "" {" ".join(self._names)}')

    def pytest_sessionfinish(self) -> None:
        if self._path:
            Path(self._path).write_text("".join(f"{name}\n" for name in self._names), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kinds", "kinds of tests")
    group.addoption(
        "--part",
        metavar="N/M",
        help="which part of the sweeps to run: N/M or all; a tenth chosen by the commit otherwise, and everything that is named with ::",
    )
    group.addoption(
        "--failed-sweeps",
        metavar="FILE",
        help="write the names of the sweeps that failed in their part, a line each, to be run whole",
    )
    group.addoption(
        "--environments",
        choices=["all", "changed"],
        default="all",
        help="changed: of the tests that make environments, only those of rooms that the change touches or that import it; all after one of packaging",
    )


def pytest_configure(config: pytest.Config) -> None:
    global _chosen
    text = config.getoption("part")
    if text is None:
        # The processes of a run are told what this one chose.
        text = "all" if any("::" in argument for argument in config.args) else ""
        config.option.part = text
    _chosen = Part.parse(text) if text else Part.of_commit()
    if not _chosen.whole and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailedSweeps(config.getoption("failed_sweeps")))


def pytest_report_header(config: pytest.Config) -> str:
    return f"sweeps: {part()}"


def room_of(nodeid: str) -> str:
    """Return where a test lives: "core", "plugins/atan_op", "tests/hostile"."""
    parts = nodeid.partition("::")[0].split("/")
    return parts[0] if parts[0] == "core" else "/".join(parts[:2])


def _is_chosen(nodeid: str, cases: bool = False, turns: int = 1, together: bool = False) -> bool:
    """Return whether a sweep belongs to the part, by what its marker says."""
    if cases:
        return part().has_turn(nodeid, turns)
    return part().holds(nodeid.partition("::")[0] if together else nodeid)


def _takes_long(item: pytest.Item) -> bool:
    """Return whether a test comes first, so that at the end of a run no process waits for another one's minutes."""
    marker = item.get_closest_marker("sweep")
    return marker is not None and not marker.kwargs.keys().isdisjoint({"turns", "together"})


def _is_left_out(item: pytest.Item, environments: str) -> bool:
    marker = item.get_closest_marker("sweep")
    if marker and not _is_chosen(item.nodeid, **marker.kwargs):
        return not part().paths or not item.nodeid.startswith(part().paths)
    if environments == "all" or kind_of(item) != "environment":
        return False
    from scripts.changes import concerned_files, concerns_environments

    return not concerns_environments(room_of(item.nodeid)) and item.nodeid.partition("::")[0] not in concerned_files()


def pytest_itemcollected(item: pytest.Item) -> None:
    if not _STARTED.isdisjoint(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.environment)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    environments = config.getoption("environments")
    if part().whole and environments == "all":
        return
    gone = {item for item in items if _is_left_out(item, environments)}
    if gone:
        config.hook.pytest_deselected(items=list(gone))
        items[:] = [item for item in items if item not in gone]
    items.sort(key=lambda item: not _takes_long(item))
