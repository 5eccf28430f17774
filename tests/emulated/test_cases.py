"""The recorded cases on other processors: the grades of this machine's numpy, and the same integers bit for bit."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scripts.emulated.environment import imported_from
from tests import wheelhouse
from tests.children import LONG
from tests.emulated.ways import WAYS, Way, extra_wheels, start_here
from tests.kinds import part
from tests.places import CONFORMANCE
from tests.recorded_cases import GROUPS, Case, chosen, here

PROGRAM = Path(__file__).with_name("answering.py")
#: What answers: pure Python, so that this machine's wheels serve everywhere.
PACKAGES = ("builtin_ops", "mediapipe_ops", "signal_ops")

pytestmark = [here, pytest.mark.sweep(cases=True, turns=3)]

Told = dict[str, Any]


def answers(command: Sequence[str], variables: Mapping[str, str], cases: Sequence[Case]) -> list[Told]:
    """What the program says of each case; a case that ends its process is a crash, and the next ones run in another."""
    told: list[Told] = []
    while waiting := cases[len(told) :]:
        asked = {"grader": str(CONFORMANCE / "run.py"), "cases": [[str(case.path), case.name] for case in waiting]}
        done = subprocess.run(
            [*command, str(PROGRAM)],
            input=json.dumps(asked),
            env=dict(variables),
            capture_output=True,
            text=True,
            timeout=max(LONG, 10.0 * len(waiting)),
            check=False,
        )
        told += map(json.loads, done.stdout.splitlines())
        assert told, f"no case was answered: {done.stderr[-2000:]}"
        if done.returncode and len(told) < len(cases):
            told.append({"verdict": "crash", "detail": f"ended with {done.returncode}: {done.stderr[-600:]}", "answers": []})
        assert done.returncode or len(told) == len(cases), done.stderr
    return told


@cache
def answers_here(cases: tuple[tuple[Path, str], ...]) -> list[Told]:
    """What this machine's numpy says of cases, the same for all levels."""
    with imported_from(wheelhouse.needed(*PACKAGES)) as paths:
        return answers(*start_here(paths), [Case(group, name, {}) for group, name in cases])


#: Strided operands, which numpy reads with AVX2's gathers; QEMU 7.2 gives the first lane's element in all lanes of some of them.
_GATHERED = """
import numpy as np
numbers = np.arange(64, dtype=np.float32)
left, right = numbers[::2], numbers[::-1].copy()[::2]
for of in np.minimum, np.maximum:
    assert np.array_equal(of(left, right), of(left.copy(), right.copy()))
"""


def gathers_wrongly(way: Way) -> bool:
    """Whether the emulator itself, with numpy alone, gives other elements than are there."""
    command, variables = way.start([])
    done = subprocess.run([*command, "-c", _GATHERED], env=variables, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0 or "AssertionError" in done.stderr, done.stderr
    return done.returncode != 0


def differs(case: Case, got: Told, wanted: Told) -> str:
    """How an answer differs from this machine's; "" if the grade is the same, and every output but those of floats."""
    if got["verdict"] != wanted["verdict"]:
        return f"{case.id}: {got['verdict']}, not {wanted['verdict']}: {got['detail'] or wanted['detail']}"
    if len(got["answers"]) != len(wanted["answers"]):
        return f"{case.id}: {got['answers']}, not {wanted['answers']}"
    others = [
        (a, b)
        for a, b in zip(got["answers"], wanted["answers"])
        if a != b and not (a.startswith("float") and b.startswith("float"))
    ]
    others += [(a, b) for a, b in zip(got.get("special", ()), wanted.get("special", ())) if a != b]
    return "".join(f"{case.id}: {a}, not {b}" for a, b in others[:1])


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_recorded_cases_get_the_grades_and_the_integers_of_this_machine(way: Way) -> None:
    cases = [case for case in chosen(*GROUPS) if case.runs]
    assert len(cases) >= part().least(2500)
    if way.emulated and way.level.by_settings and gathers_wrongly(way):
        pytest.skip(f"this emulator's gathers are wrong in numpy alone; {way.name}-by-settings runs the level")
    with imported_from([*wheelhouse.needed(*PACKAGES), *extra_wheels(way.level.architecture)]) as paths:
        got = answers(*way.start(paths), cases)
    wanted = answers_here(tuple((case.group, case.name) for case in cases))
    rounded = sum(a["answers"] != b["answers"] for a, b in zip(got, wanted))
    print(f"{way}: {len(cases)} cases, {dict(Counter(a['verdict'] for a in got))}; in {rounded} of them floats differ in bits")
    wrong = [said for case, a, b in zip(cases, got, wanted) if (said := differs(case, a, b))]
    assert not wrong, "\n".join(wrong)
