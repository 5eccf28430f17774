"""What an answer is worth beside LiteRT's.

An output of whole numbers is "equal" if it is one of LiteRT's ways; of floats if it is no farther from one of them than they are
from each other, or than 1e-5 of the output's scale. Where they disagree, or none of them ran, the framework that the model comes
from is asked as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .cases import Array, Case
from .running import Answers

__all__ = ["RANKS", "Verdict", "grade", "grade_output", "ways_of"]

#: From best to worst.
RANKS = ("equal", "near", "wrong", "refused")

#: What another order of summation may change, relative to an output's scale.
RELATIVE = 1e-5

#: Of a float that is not equal: this much of the scale makes it near.
NEAR = 1e-2


class Verdict(NamedTuple):
    """A rank, and what differs where it is not "equal"."""

    rank: str
    detail: str = ""


def _scale(values: Sequence[Array]) -> float:
    largest = 0.0
    for value in values:
        finite = np.abs(value[np.isfinite(value)])
        if finite.size:
            largest = max(largest, float(finite.max()))
    return largest or 1.0


def _distance(a: Array, b: Array) -> float:
    """The largest difference; infinite where one is no number and the other is."""
    with np.errstate(all="ignore"):
        a, b = (
            a.astype(np.complex128 if a.dtype.kind == "c" else np.float64),
            b.astype(a.dtype if a.dtype.kind == "c" else np.float64),
        )
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.where(same, 0.0, np.abs(a - b))
    if not apart.size:
        return 0.0
    return float("inf") if np.isnan(apart).any() else float(apart.max())


def grade_output(got: Array, wants: Sequence[Array], own: Array | None = None) -> Verdict:
    """Grade one output beside what LiteRT's ways give, and what the framework itself gives."""
    alike = own is not None and own.shape == got.shape and own.dtype.kind == got.dtype.kind
    allowed = [own.astype(got.dtype)] if own is not None and alike else []
    if not wants and not allowed:
        return Verdict("equal", "nothing to compare with")
    fitting = [want for want in wants if want.shape == got.shape and want.dtype == got.dtype]
    if not fitting and not allowed:
        want = wants[0]
        return Verdict("wrong", f"is {got.dtype}{list(got.shape)}, LiteRT's {want.dtype}{list(want.shape)}")
    if got.dtype.kind not in "fc" and got.dtype.name != "bfloat16":
        if any(np.array_equal(got, want) for want in [*fitting, *allowed]):
            return Verdict("equal")
        nearest = min((_distance(got, want) for want in [*fitting, *allowed]), default=float("inf"))
        count = min(int((got != want).sum()) for want in [*fitting, *allowed])
        return Verdict(
            "near" if nearest <= 1 and got.dtype.kind in "iu" else "wrong", f"off by up to {nearest:g}, {count} of {got.size}"
        )
    epsilon = 1e-3 if got.dtype == np.float16 else RELATIVE
    scale = _scale([*fitting, *allowed])
    spread = max((_distance(a, b) for a in fitting for b in fitting), default=0.0)
    nearest = min((_distance(got, want) for want in fitting), default=float("inf"))
    if nearest <= max(spread, epsilon * scale):
        return Verdict("equal")
    if allowed and (spread > epsilon * scale or not fitting):
        mine = _distance(got, allowed[0])
        if mine <= max(epsilon * scale * 10, min((_distance(allowed[0], want) for want in fitting), default=0.0)):
            return Verdict("equal")
        nearest = min(nearest, mine)
    detail = f"off by up to {nearest:.3g} of {scale:.3g}; LiteRT's ways differ by {spread:.3g}"
    return Verdict("near" if nearest <= NEAR * scale else "wrong", detail)


def ways_of(case: Case) -> list[str]:
    """LiteRT's ways that ran a case."""
    return [way for way in case.steps[0].answers if way != "own"]


def grade(case: Case, answers: Answers) -> Verdict:
    """The worst verdict over a case's steps and outputs."""
    worst = Verdict("equal")
    for number, (step, found) in enumerate(zip(case.steps, answers)):
        for name, got in found.items():
            wants = [answer[name] for way, answer in step.answers.items() if way != "own" and name in answer]
            verdict = grade_output(got, wants, step.answers.get("own", {}).get(name))
            if RANKS.index(verdict.rank) > RANKS.index(worst.rank):
                worst = Verdict(verdict.rank, f"step {number}, {name}: {verdict.detail}")
    return worst
