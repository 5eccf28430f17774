"""The recordings that lie beside the project: what LiteRT ran, and the grader that runs it again."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from tests.places import CONFORMANCE

from oplet import PluginManager
from oplet.errors import OpletError

__all__ = ["GROUPS", "grader", "here", "verdicts"]

GROUPS = sorted(
    p.relative_to(CONFORMANCE)
    for f in ("ops", "real")
    for p in (CONFORMANCE / f).glob("*.zip")
    if p.stem not in ("flex", "unrunnable")
)

here = pytest.mark.skipif(not GROUPS, reason="the recorded cases lie outside the project and are not here")


@cache
def grader() -> ModuleType:
    """The grader that lies beside the recordings."""
    spec = importlib.util.spec_from_file_location("oplet_recorded_cases", CONFORMANCE / "run.py")
    if spec is None or spec.loader is None:
        pytest.skip("there is no grader beside the recordings")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _served() -> Collection[str]:
    """The operators that installed packages serve."""
    return {entry.op if isinstance(entry.op, str) else entry.op.name for entry in PluginManager().resolver().entries()}


def verdicts(group: Path) -> Iterator[tuple[str, str, str]]:
    """Run every case of a group whose operators are served: "group/case", the verdict and its details."""
    path = CONFORMANCE / group
    with zipfile.ZipFile(path) as archive:
        names = sorted({n.rsplit("/", 1)[0] for n in archive.namelist() if n.endswith("case.json")})
        cases = {name: json.loads(archive.read(f"{name}/case.json")) for name in names}
    for name, case in cases.items():
        needed = {op.split(" ")[0].removeprefix("CUSTOM:") for op in case["ops"]}
        if not case["steps"] or not needed <= set(_served()):
            continue
        try:
            verdict, detail, _ = grader().run_case("oplet:Interpreter", str(path), name)
        except OpletError as error:
            verdict, detail = "error", str(error)
        yield f"{path.stem}/{name}", verdict, detail
