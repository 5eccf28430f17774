"""Whatever a process finds, the answer is the same as where nothing is kept: no cache, another version's, none to be had, other levels of machine code."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from tests.children import run_child
from tests.kinds import part
from tests.places import ROOT
from tests.recorded_cases import GROUPS, chosen, here

from oplet import PluginManager

opening = pytest.importorskip("oplet_compiled_ops.library.opening")

pytestmark = [here, pytest.mark.sweep(cases=True)]
Verdicts = list[list[str]]


@cache
def _cases() -> str:
    """The cases of this part that run here, as the child reads them."""
    served = {entry.op if isinstance(entry.op, str) else entry.op.name for entry in PluginManager().resolver().entries()}
    return json.dumps([(str(case.path), case.name) for case in chosen(*GROUPS) if case.runs and case.operators <= served])


def run(caches: Path, threads: int = 1, **variables: str) -> Verdicts:
    """Run the cases in a process of its own, with caches in a folder, and return their verdicts; it may say nothing on standard error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPLET_", "XDG_"))}
    environment |= {"XDG_CACHE_HOME": str(caches), "HOME": str(caches), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    # Casts of what the grader compares say a word of numpy's.
    command = [sys.executable, "-W", "ignore::RuntimeWarning", str(Path(__file__).with_name("child.py")), str(threads)]
    done = run_child(command, input=_cases(), env=environment | variables)
    assert done.stderr == ""
    found: Verdicts = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """The verdicts where nothing is kept."""
    caches = tmp_path_factory.mktemp("usual")
    found = run(caches, OPLET_PLANS="off")
    assert len(found) >= part().least(2000)
    return found


def worse(found: Verdicts, usual: Verdicts) -> Verdicts:
    """Return the verdicts that are not exact, and not the usual ones: of several right answers another may be the nearer one."""
    return [[*one, other[1]] for one, other in zip(found, usual, strict=True) if one[1] not in ("exact", other[1])]


def test_the_first_the_second_and_the_third_process_on_a_machine_answer_alike(usual: Verdicts, tmp_path: Path) -> None:
    for what in "notes models", "stores plans", "takes them":
        assert worse(run(tmp_path), usual) == [], what
    plans = list(tmp_path.rglob("*.plan"))
    assert bool(plans) is has_machine_code()
    for path in plans:
        path.write_bytes(path.read_bytes().replace(b"oplet plan 1", b"oplet plan 0"))
    assert worse(run(tmp_path), usual) == [], "plans of another version"


def test_two_processes_at_once_on_a_new_machine_answer_alike(usual: Verdicts, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        for found in pool.map(lambda threads: run(tmp_path, threads), (1, 2)):
            assert worse(found, usual) == []


def test_a_process_that_can_keep_nothing_answers_alike(usual: Verdicts, tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.touch()
    assert worse(run(nowhere), usual) == []


def test_a_process_without_compiled_kernels_answers_alike(usual: Verdicts, tmp_path: Path) -> None:
    assert worse(run(tmp_path, OPLET_DISABLE_PLUGINS="oplet-compiled-ops"), usual) == []


def test_every_level_of_machine_code_answers_alike(usual: Verdicts, tmp_path: Path) -> None:
    if not has_machine_code():
        pytest.skip("there is no machine code for this machine")
    levels = [level for level in opening.levels_here() if Path(opening.folder(), f"{level}{opening.SUFFIX}").exists()]
    for level in levels:
        assert worse(run(tmp_path, OPLET_COMPILED_LEVEL=level), usual) == [], level


def has_machine_code() -> bool:
    """Whether a library of kernels can be opened here."""
    try:
        opening.library()
    except opening.MissingKernelError:
        return False
    return True
