"""Run the searches of many seeds, hold the answers against what is promised, and count."""

from __future__ import annotations

import json
import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.complexity.knobs import ops_of
from tests.complexity.protocol import Answer
from tests.complexity.search import Case, Search
from tests.complexity.seeds import Seed
from tests.complexity.watch import GROWTH, SLACK, Watched, offence

from oplet.errors import ModelError

__all__ = ["QUICK", "Found", "Sweep", "hold"]

#: `max_seconds` of the search: a model that overruns this by two seconds is run again with the documented two.
QUICK = 0.4

#: Models of one seed after which its search ends.
_ENOUGH = 3

#: Models of one seed that are kept for the tests.
_KEPT = 2


@dataclass
class Found:
    """A model that took more than is promised, or answered with what is none of oplet's errors."""

    case: Case
    answer: Answer
    what: str

    def line(self) -> str:
        """What it is, in one line."""
        answer, knobs = self.answer, {" ".join(map(str, knob)): value for knob, value in self.case.knobs}
        seconds = ", ".join(f"{stage} {value:.1f} s" for stage, value in answer.seconds.items() if value > 0.5)
        return (
            f"{self.what}: {self.case.seed} {knobs} fill={self.case.fill} made={self.case.made}: {answer.kind} {answer.stage} {answer.error} "
            f"[{seconds}] +{answer.grown >> 20} MB at {answer.place} {answer.warned or answer.message[:150]}"
        )


def hold(child: Watched, case: Case, data: bytes) -> tuple[str, Answer]:
    """Run a case; what it did that it may not, "" if nothing, and what came of it."""
    try:
        request = case.request(data, QUICK)
    except ModelError as error:  # a number that the format cannot hold
        return "", Answer("refused", "build", type(error).__name__)
    answer = child.run(request)
    what = offence(answer, QUICK)
    if what in ("time", "hung"):
        slow = child.run(case.request(data, 2.0))
        what = offence(slow)
        answer = slow if what else answer
    return what, answer


@dataclass
class Sweep:
    """The searches of some seeds with one engine.

    Attributes:
        pairs: how many pairs of groups of numbers are blown up for each seed; below 0 only dimensions are.
        found: what broke a promise.
        heaviest: by seed the models that took most, and what they took as a part of what is allowed.
        counts: by operator, how many models were accepted that were blown up by more than 16, and how many were refused.
    """

    engine: str
    pairs: int = 10
    brief: bool = False
    folder: Path | None = None
    say: Callable[[str], None] = print
    found: list[Found] = field(default_factory=list)
    heaviest: dict[str, list[tuple[float, Case]]] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def run(self, chosen: Iterable[Seed], salt: str = "") -> None:
        """Search from these seeds."""
        with Watched(self.engine) as child:
            for seed in chosen:
                self._search(child, seed, salt)

    def _search(self, child: Watched, seed: Seed, salt: str) -> None:
        before, found, ops = child.runs, len(self.found), ops_of(seed.data)

        def run(case: Case, data: bytes) -> Answer:
            answer = self._run(child, case, data, ops)
            search.stopped = len(self.found) >= found + _ENOUGH
            return answer

        search = Search(seed, run, salt, self.brief)
        if self.pairs < 0:
            search.run_least()
        else:
            search.run(self.pairs)
        if search.fill is None:
            self.say(f"{seed.name}: the seed itself does not run")
        self.say(f"{seed.name}: {child.runs - before} models, {len(self.found)} found so far")

    def _run(self, child: Watched, case: Case, data: bytes, ops: Iterable[str]) -> Answer:
        what, answer = hold(child, case, data)
        blown = any(abs(value) > 16 for _, value in case.knobs)
        for op in ops:
            self.counts[op][("accepted" if answer.accepted else answer.kind) if blown else "small"] += 1
        self._weigh(case, answer)
        if what:
            self._note(Found(case, answer, what), case.request(data, None))
        return answer

    def _weigh(self, case: Case, answer: Answer) -> None:
        """Keep the heaviest models of the seed, of which no two are of the same numbers."""
        weight = round(answer.slowest / (QUICK + SLACK) + answer.grown / GROWTH, 3)
        kept = self.heaviest.setdefault(case.seed, [])
        kept += [(weight, case)]
        kept.sort(key=lambda item: -item[0])
        numbers = [tuple(knob for knob, _ in each.knobs) for _, each in kept]
        kept[:] = [item for at, item in enumerate(kept) if numbers[at] not in numbers[:at]][:_KEPT]

    def _note(self, found: Found, request: Any) -> None:
        self.found.append(found)
        self.say(found.line())
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            name = f"{self.engine}-{found.case.seed}-{len(self.found)}"
            (self.folder / f"{name}.tflite").write_bytes(request.model)
            (self.folder / f"{name}.case").write_bytes(pickle.dumps(found.case))
            with (self.folder / f"found-{self.engine}.jsonl").open("a") as file:
                file.write(
                    json.dumps({"name": name, "line": found.line(), "what": found.what, "place": found.answer.place}) + "\n"
                )
