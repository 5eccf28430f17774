"""The small valid models that are blown up: those that fuzzing begins with."""

from __future__ import annotations

from typing import NamedTuple

from fuzz.seeds import make_seeds
from tests.complexity.custom_seeds import custom_seeds
from tests.complexity.knobs import knobs_of

from oplet import MutableOpResolver
from oplet.ops.serving.registration import op_label
from oplet_builtin_ops import register_ops as builtin_ops
from oplet_coral_ops import register_ops as coral_ops
from oplet_larq_ops import register_ops as larq_ops
from oplet_mediapipe_ops import register_ops as mediapipe_ops
from oplet_signal_ops import register_ops as signal_ops

__all__ = ["Seed", "registered", "seeds"]


class Seed(NamedTuple):
    """A valid model."""

    name: str
    data: bytes


def seeds() -> list[Seed]:
    """The seeds, by name, those with sizes among their options and constants first."""
    made = {**make_seeds(), **custom_seeds()}
    every = [Seed(name, data) for name, data in sorted(made.items()) if name != "atan"]
    return sorted(every, key=lambda seed: not any(knob[0] in ("option", "value", "custom") for knob in knobs_of(seed.data)))


def registered() -> set[str]:
    """Every operator that the packages register."""
    resolver = MutableOpResolver()
    for register in (builtin_ops, coral_ops, larq_ops, signal_ops, mediapipe_ops):
        register(resolver)
    return {op_label(entry.op) for entry in resolver.entries()}
