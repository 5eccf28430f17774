"""A sweep over cases: each on each engine, through its signatures and as the graph, graded, and held against what is explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .cases import Case
from .engines import engine
from .explained import EXPLAINED
from .grading import RANKS, Verdict, grade, ways_of
from .running import plain, plain_run, run

__all__ = ["Sweep", "judge", "sweep"]


class Sweep(NamedTuple):
    """What came of a sweep: how many runs had which rank, and the sentences about what nobody explained."""

    counts: Counter[str]
    wrong: list[str]


def judge(case: Case, name: str) -> list[Verdict]:
    """A case on an engine: through its signatures, and as the graph where it has one signature."""
    verdicts = []
    for runs in (run, plain_run) if plain(case) else (run,):
        try:
            verdicts.append(grade(case, runs(engine(name), case.model, case.steps)))
        except Exception as error:
            refused = bool(ways_of(case)) or any("own" in step.answers for step in case.steps)
            verdicts.append(
                Verdict("refused" if refused else "equal", " ".join(f"{type(error).__name__}: {error}".split())[:300])
            )
    return verdicts


def sweep(cases: Iterable[Case], engines: Sequence[str]) -> Sweep:
    """Judge cases; an explained case that has become better counts as wrong too, so that no explanation outlives its reason."""
    counts: Counter[str] = Counter()
    wrong = []
    for case in cases:
        at, rank, _ = EXPLAINED.get(case.name, ("", "equal", ""))
        found = {name: judge(case, name) for name in engines}
        counts.update(f"{name} {verdict.rank}" for name, verdicts in found.items() for verdict in verdicts)
        concerned = {name: verdicts for name, verdicts in found.items() if not at or name in at.split()}
        if rank != "equal" and concerned and all(v.rank == "equal" for verdicts in concerned.values() for v in verdicts):
            wrong.append(f"{case.name} is explained as {rank} and is equal")
        for name, verdicts in found.items():
            allowed = RANKS.index(rank if name in concerned else "equal")
            bad = [verdict for verdict in verdicts if RANKS.index(verdict.rank) > allowed]
            wrong += [f"{case.name} on {name}: {verdict.rank}, {verdict.detail}" for verdict in bad[:1]]
    return Sweep(counts, wrong)
