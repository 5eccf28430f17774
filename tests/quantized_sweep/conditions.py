"""The quantizations that the sweep tries: dead, tiny, denormal, huge and ordinary scales, zero points at the borders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from .draft import RANGES, Quantized

#: What quantizers write for what never fires (7.8e-9, 3.6e-43), the smallest and largest floats, and what lies between.
SCALES = (0.05, 0.0, 1.4e-45, 3.6e-43, 1.2e-38, 7.8e-9, 1e-4, 30.0, 1e10, 1e30, 3.4e38)


class Condition(NamedTuple):
    """The quantizations of an operator's inputs and output.

    Attributes:
        name: for reports.
        inputs: of the first input, and of the others.
        output: of the output.
    """

    name: str
    inputs: tuple[Quantized, Quantized]
    output: Quantized


def zero_points(type: str) -> tuple[int, ...]:
    """A zero point inside the type's range and the two at its borders; int16 is symmetric."""
    if type == "int16":
        return (0,)
    low, high = RANGES[type]
    return ((low + high) // 2 + 4, low, high)


def conditions(type: str, inputs: int) -> Iterator[Condition]:
    """All conditions of an operator with as many inputs."""
    for number, (first, output) in enumerate(itertools.product(SCALES, SCALES)):
        points = zero_points(type)
        chosen = points[number % len(points)], points[(number // 2) % len(points)], points[(number // 3) % len(points)]
        others = (first,) if inputs == 1 else tuple(dict.fromkeys((first, 0.05, SCALES[number % len(SCALES)])))
        for other in others:
            named = f"{first:g}" if inputs == 1 else f"{first:g}, {other:g}"
            yield Condition(
                f"{named} -> {output:g} at {chosen}",
                (Quantized(first, chosen[0]), Quantized(other, chosen[1])),
                Quantized(output, chosen[2]),
            )
