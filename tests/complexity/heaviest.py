"""The models that a sweep found to take most, kept in a file for the tests: a line of JSON each, by seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.complexity.search import Case

from oplet.model.files.atomic_write import write_atomically

__all__ = ["KEPT", "keep", "kept"]

#: The file of this repository.
KEPT = Path(__file__).with_name("heaviest.jsonl")


def kept(path: Path = KEPT) -> list[Case]:
    """The cases of a file, in its order."""
    cases = []
    for line in path.read_text().splitlines() if path.exists() else ():
        seed, knobs, fill, made = json.loads(line)
        cases.append(Case(seed, tuple((tuple(knob), value) for knob, value in knobs), fill, made))
    return cases


def keep(path: Path, found: Mapping[str, Sequence[tuple[float, Case]]]) -> None:
    """Put the cases of some seeds in the place of what the file has of them."""
    cases = [case for case in kept(path) if case.seed not in found]
    cases += [case for weighed in found.values() for _, case in weighed if case.knobs]
    lines = sorted(json.dumps(case) for case in cases)
    write_atomically(path, "".join(line + "\n" for line in lines))
