"""The recordings that lie beside the project: what LiteRT ran, and the grader that runs it again.

All who go over recorded cases take them from here: a group's descriptions are read once in a process, when its first test runs, and a
run has those of its part (tests/kinds.py).
"""

from __future__ import annotations

import importlib.util
import io
import json
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.kinds import part
from tests.places import CONFORMANCE

from oplet import PluginManager
from oplet.errors import OpletError

__all__ = [
    "ALL_GROUPS",
    "GROUPS",
    "Case",
    "cases",
    "chosen",
    "every_delegated_group",
    "every_group",
    "grader",
    "here",
    "processes",
    "verdicts",
    "wrong_in",
]

#: The archives of cases, from CONFORMANCE on; and those whose operators oplet has and whose models LiteRT runs.
ALL_GROUPS = sorted(path.relative_to(CONFORMANCE) for folder in ("ops", "real") for path in (CONFORMANCE / folder).glob("*.zip"))
GROUPS = [path for path in ALL_GROUPS if path.stem not in ("flex", "unrunnable")]

here = pytest.mark.skipif(not GROUPS, reason="the recorded cases lie outside the project and are not here")
every_group = pytest.mark.parametrize("group", GROUPS, ids=lambda path: f"{path.parent.name}-{path.stem}")
every_delegated_group = pytest.mark.parametrize(
    "group", [group for group in ALL_GROUPS if group.stem != "unrunnable"], ids=lambda path: f"{path.parent.name}-{path.stem}"
)


class Case(NamedTuple):
    """A recorded case.

    Attributes:
        group: its archive, from CONFORMANCE on.
        name: its folder in there.
        described: what case.json says; {} for a model that was recorded without one.
    """

    group: Path
    name: str
    described: dict[str, Any]

    @property
    def id(self) -> str:
        """Its name in reports, "group/case"."""
        return f"{self.group.stem}/{self.name}"

    @property
    def path(self) -> Path:
        """The archive."""
        return CONFORMANCE / self.group

    @property
    def runs(self) -> bool:
        """Whether it was recorded with inputs and answers."""
        return bool(self.described.get("steps"))

    @property
    def operators(self) -> set[str]:
        """The names of its operators, those of custom ones as well."""
        return {op.split(" ")[0].removeprefix("CUSTOM:") for op in self.described.get("ops", ())}

    def model(self) -> bytes:
        """Return the bytes of its model."""
        return _member(self.path, f"{self.name}/model.tflite")

    def arrays(self) -> dict[str, Any]:
        """Return the inputs and answers that were recorded."""
        with np.load(io.BytesIO(_member(self.path, f"{self.name}/io.npz")), allow_pickle=True) as found:
            return dict(found)


@lru_cache(maxsize=8)
def _member(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


@cache
def cases(group: Path) -> tuple[Case, ...]:
    """Return all cases of a group, sorted by name."""
    with zipfile.ZipFile(CONFORMANCE / group) as archive:
        there = set(archive.namelist())
        names = sorted({name.rsplit("/", 1)[0] for name in there if name.endswith("/model.tflite")})
        described = ((name, f"{name}/case.json") for name in names)
        return tuple(Case(group, name, json.loads(archive.read(file)) if file in there else {}) for name, file in described)


def chosen(*groups: Path) -> list[Case]:
    """Return the cases of these groups that belong to this run's part."""
    return [case for group in groups for case in cases(group) if part().holds(case.id, case.operators)]


@cache
def grader() -> ModuleType:
    """The grader that lies beside the recordings."""
    spec = importlib.util.spec_from_file_location("run", CONFORMANCE / "run.py")  # by which processes of its own import it
    if spec is None or spec.loader is None:
        pytest.skip("there is no grader beside the recordings")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def processes(delegate: str) -> Iterator[Any]:
    """A process that runs cases with a delegate, as `--delegate` names it, replaced when it dies: a delegate may end it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(CONFORMANCE))
        patch.setitem(sys.modules, "run", grader())
        pool = grader().Pool(f"benchmarks.delegated:{delegate}")
        yield pool
        pool.stop()


def wrong_in(group: Path, process: Any, explained: Mapping[str, str], seconds: int) -> str:
    """Run the cases of this part in a process of `processes`; return a line for each that is neither exact nor as `explained`, by the
    beginning of its id, says.
    """
    wrong = []
    for case in chosen(group):
        if case.runs:
            verdict, detail, _ = process.run((str(case.path), case.name), seconds)
            if verdict not in ("exact", next((v for start, v in explained.items() if case.id.startswith(start)), "exact")):
                wrong.append(f"{verdict} {case.name}: {detail}")
    return "\n".join(wrong)


@cache
def _served() -> Collection[str]:
    """The operators that installed packages serve."""
    return {entry.op if isinstance(entry.op, str) else entry.op.name for entry in PluginManager().resolver().entries()}


def verdicts(group: Path) -> Iterator[tuple[str, str, str]]:
    """Run the cases of this part whose operators are served: "group/case", the verdict and its details."""
    for case in chosen(group):
        if not case.runs or not case.operators <= set(_served()):
            continue
        try:
            verdict, detail, _ = grader().run_case("oplet:Interpreter", str(case.path), case.name)
        except OpletError as error:
            verdict, detail = "error", str(error)
        yield case.id, verdict, detail
