"""The units of the core and of the operators pass on another architecture."""

from __future__ import annotations

import os
import re

import pytest
from scripts.emulated.environment import imported_from
from tests import wheelhouse
from tests.children import run_child
from tests.emulated.ways import EMULATED, Way
from tests.kinds import Part, part
from tests.places import ROOT, SWEEP

pytestmark = pytest.mark.environment

PACKAGES = ("builtin_ops", "testing", "predictor")
ROOMS = ("core/tests", "plugins/builtin_ops/tests")
#: Files that are left out, and why. What compares with LiteRT skips itself, as LiteRT is not installed there.
LEFT_OUT: dict[str, str] = {}
FILES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("test_*.py"))


def files() -> list[str]:
    """The files of this run: a tenth, as all of them take an hour, which OPLET_EVERY_CASE=1 asks for."""
    mine = Part.of_commit() if part().whole and SWEEP > 1 else part()
    return [file for file in mine.among(FILES) if file not in LEFT_OUT]


def test_what_is_left_out_is_there() -> None:
    assert set(LEFT_OUT) <= set(FILES)


@pytest.mark.parametrize("way", EMULATED[:1], ids=str)
def test_units_of_the_core_and_of_the_operators_pass(way: Way) -> None:
    asked = os.environ.get("EMULATED_UNITS", "").split() or files()
    with imported_from(wheelhouse.needed(*PACKAGES)) as paths:
        command, variables = way.start(paths)
        program = [*command, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--part", "all", *asked]
        done = run_child(program, env=variables, cwd=ROOT, timeout=7200)
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    assert passed, done.stdout[-2000:]
    print(f"{way}: {done.stdout.splitlines()[-1]}; {len(asked)} of {len(FILES)} files")
