"""Blow up the numbers of a seed: which may grow together, how far the limits let them, and two such groups at once.

Which numbers must grow together (the channels of a picture and of its filter, operands and their declared count) is found by
doubling them, not listed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from math import log2, prod
from typing import NamedTuple

from tests.complexity.feeding import FILLS, Feed
from tests.complexity.knobs import Knob, Knobs, build, knobs_of
from tests.complexity.protocol import Answer, Request
from tests.complexity.seeds import Seed

__all__ = ["Case", "Search", "grown"]

#: What the knobs are multiplied by: 2 to the power of these.
_POWERS = (30, 28, 26, *range(25, 0, -1))
_FEW_POWERS = (30, *range(26, 0, -2))

#: What a number costs that does not matter: CPU seconds and bytes.
_NOTHING = 0.03, 1 << 20

Direction = tuple[Knob, ...]


class Case(NamedTuple):
    """A seed with some numbers blown up, and what it is fed.

    Attributes:
        made: where large constants come from, see `knobs.build`.
    """

    seed: str
    knobs: tuple[tuple[Knob, int], ...]
    fill: str = "zeros"
    made: str = "tiled"

    def request(self, data: bytes, seconds: float | None) -> Request:
        """The model of this case; `data` is its seed."""
        knobs = dict(self.knobs)
        given: dict[int, dict[int, int]] = {}
        for knob, value in knobs.items():
            if knob[0] == "fed":
                given.setdefault(knob[1], {})[knob[2]] = value
        words = {knob[1]: value for knob, value in knobs.items() if knob[0] == "words"}
        return Request(build(data, knobs, self.made), Feed(self.fill, given, words), seconds)


Note = Callable[[Case, Answer], None]


def grown(seed: Seed, elements: int = 1 << 22) -> Case:
    """The seed with its most frequent dimension so long that its largest tensor has about so many elements."""
    dims = {knob: value for knob, value in knobs_of(seed.data).items() if knob[0] == "dim" and value > 0}
    values = sorted(dims.values())
    often = max(values, key=lambda value: (values.count(value), value), default=1)
    sizes = [
        (
            prod(value for knob, value in dims.items() if knob[1:3] == place),
            sum(dims[knob] == often for knob in dims if knob[1:3] == place),
        )
        for place in {knob[1:3] for knob in dims}
    ]
    power = min((int(log2(elements / size) / count) for size, count in sizes if count), default=0)
    return Case(seed.name, tuple((knob, value << power) for knob, value in dims.items() if value == often), "ones")


class Search:
    """The blown-up models of one seed.

    Attributes:
        fill: how the inputs are filled that the seed itself takes, None if it takes none.
        stopped: set from outside to end the search.

    Args:
        salt: for other pairs.
        brief: try fewer sizes and values.
    """

    def __init__(self, seed: Seed, run: Callable[[Case, bytes], Answer], salt: str = "", brief: bool = False) -> None:
        self.seed = seed
        self._brief = brief
        self._run = run
        self._base = knobs_of(seed.data)
        self._random = random.Random(f"{seed.name} {salt}")
        self._fed: dict[Knob, int] = {}
        self._seen: dict[Case, Answer] = {}
        self._tops: dict[Direction, int] = {}
        self.fill: str | None = None
        self.stopped = False

    def _try(self, knobs: Knobs, fill: str = "", made: str = "tiled") -> Answer:
        knobs = {**self._fed, **knobs}
        case = Case(self.seed.name, tuple(sorted(knobs.items(), key=str)), fill or self.fill or "zeros", made)
        if self.stopped:
            return Answer("refused")
        if case not in self._seen:
            self._seen[case] = self._run(case, self.seed.data)
        return self._seen[case]

    def _scaled(self, direction: Iterable[Knob], factor: int) -> dict[Knob, int]:
        return {knob: min(factor * max(self._base[knob], 1), 2**62) for knob in direction}

    def begin(self) -> Answer:
        """Find how the seed wants to be fed."""
        answer = Answer("refused")
        for fill in FILLS:
            answer = self._try({}, fill)
            if answer.kind == "ok":
                self.fill = fill
                return answer
        fed = [knob for knob in self._base if knob[0] == "fed"]
        for _ in range(200 if fed else 0):
            self._fed = {knob: self._random.randrange(4) for knob in fed}
            if (answer := self._try({})).kind == "ok":
                self.fill = "zeros"
                self._base.update(self._fed)
                return answer
        return answer

    def directions(self, most: int = 400) -> list[Direction]:
        """Groups of knobs that can be doubled together, small ones first."""
        knobs = list(self._base)
        good: list[Direction] = []
        bad: list[Knob] = []
        for knob in knobs:
            if self._valid((knob,)):
                good.append((knob,))
            else:
                bad.append(knob)
        tried = 0
        for knob in bad:
            if any(knob in direction for direction in good):
                continue
            others = sorted(
                (k for k in knobs if k != knob),
                key=lambda k: (self._base[k] != self._base[knob], k[0] == knob[0] and k[:3] == knob[:3]),
            )
            same = [k for k in others if self._base[k] == self._base[knob]]
            for more in itertools.chain(
                ((k,) for k in others), itertools.combinations(same, 2), itertools.combinations(same, 3), (tuple(same),)
            ):
                tried += 1
                if tried > most:
                    break
                if self._valid((knob, *more)):
                    good.append((knob, *more))
                    break
        for value in sorted({self._base[k] for k in knobs if k[0] == "dim"}):
            group = tuple(k for k in knobs if k[0] == "dim" and self._base[k] == value)
            if len(group) > 1 and group not in good and self._valid(group):
                good.append(group)
        return good

    def _valid(self, direction: Direction) -> bool:
        return self._try(self._scaled(direction, 2)).accepted

    def largest(self, direction: Direction, more: Knobs, powers: Sequence[int] = (), made: str = "tiled") -> int:
        """The largest power of 2 that is not refused, 0 if none."""
        for power in powers or (_FEW_POWERS if self._brief else _POWERS):
            if self._try({**self._scaled(direction, 1 << power), **more}, made=made).accepted:
                return power
        return 0

    def run_least(self) -> None:
        """Blow up the dimensions only, those of one size together and each alone."""
        if self.begin().kind != "ok":
            return
        dims = [knob for knob in self._base if knob[0] == "dim"]
        for value in sorted({self._base[knob] for knob in dims}):
            self.largest(tuple(knob for knob in dims if self._base[knob] == value), {}, _FEW_POWERS)
        for knob in [*dims, *(knob for knob in self._base if knob[0] in ("fed", "words", "rank"))][:8]:
            self.largest((knob,), {}, _FEW_POWERS)

    def run(self, pairs: int) -> None:
        """Blow up every group alone, then `pairs` pairs of them, then with other values and other origins of constants."""
        if self.begin().kind != "ok":
            return
        directions = self.directions(60 if self._brief else 400)
        idle: set[Direction] = set()
        for direction in directions:
            top = self._tops[direction] = self.largest(direction, {})
            answer = self._try(self._scaled(direction, 1 << top))
            if top == 30 and answer.kind == "ok" and answer.slowest < _NOTHING[0] and answer.grown < _NOTHING[1]:
                idle.add(direction)
            elif answer.kind == "ok":
                self._look(direction, top, {})
                self._try(self._scaled(direction, 1 << top // 2))
            for value in (0, -(2**31)) if self._brief else (0, -1, -(2**31)):
                self._try(dict.fromkeys(direction, value))
        idle = {direction for direction in idle if direction[0][0] == "dim"}
        every = [pair for pair in itertools.combinations(directions, 2) if not idle.intersection(pair)]
        self._random.shuffle(every)
        for first, second in every[:pairs]:
            self._pair(first, second)

    def _look(self, direction: Direction, power: int, more: Knobs) -> None:
        knobs = {**self._scaled(direction, 1 << power), **more}
        for fill in ("random",) if self._brief else ("ramp", "random"):
            self._try(knobs, fill)
        if self._brief:
            return
        for fill in ("ones", "falling", "most"):
            self._try({**self._scaled(direction, 1 << power // 2), **more}, fill)
        if any(knob[0] == "dim" for knob in knobs):
            self._try(knobs, made="fed")

    def _pair(self, first: Direction, second: Direction) -> None:
        if set(first) & set(second):
            return
        tops = [self._tops[first], self._tops[second]]
        for one, other, top in ((first, second, tops[0]), (second, first, tops[1])):
            fixed = self._scaled(one, 1 << top)
            power = self.largest(other, fixed, _FEW_POWERS)
            if power:
                self._try({**self._scaled(other, 1 << power), **fixed}, "random")
            self._try({**fixed, **dict.fromkeys(other, 0)})
        for power in range(min(tops), 0, -2 if self._brief else -1):
            knobs = {**self._scaled(first, 1 << power), **self._scaled(second, 1 << power)}
            if self._try(knobs).accepted:
                self._try(knobs, "random")
                break
