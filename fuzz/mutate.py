"""Make a broken model of a valid one, or of two.

What is done follows from the seed models and a number alone, so that a number is the name of a bug.
Most mutations are made on the decoded tables: the file stays a FlatBuffer, and the damage reaches the planner and the
kernels. Some make up for what the verifier would refuse (the buffer of a constant grows with its shape), because what
every check but the last one catches is not worth a million runs. The rest is damage to the bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from fuzz import byte_mutations, file_mutations, graph_mutations, node_mutations, tensor_mutations
from fuzz.choices import Choices, SeededChoices
from fuzz.random_parts import flip_field
from fuzz.splice_mutations import chained, spliced
from oplet.errors import ModelError
from oplet.schema import tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode

__all__ = ["mutate", "mutated"]


def mutated(seed: bytes, name: str, number: int, other: bytes = b"") -> bytes:
    """The mutation of a seed model that has this number.

    Args:
        name: the seed's name, part of what decides.
        other: a second seed, whose parts may be put into the first.
    """
    return mutate(seed, SeededChoices(f"{name} {number}"), other)


def mutate(seed: bytes, choices: Choices, other: bytes = b"") -> bytes:
    """A broken model: some mutations of the tables, of the bytes, or both; now and then of two models in one."""
    kind = choices.below(100)
    data = seed
    if kind < 88:
        root = decode(tables.Model, memoryview(seed))
        try:
            if other and choices.chance(12):
                spliced(choices, root, decode(tables.Model, memoryview(other)))
            for _ in range(_count(choices)):
                choices.choice(_MUTATIONS)(choices, root)
            data = encode(root)
        except _CANNOT:
            return byte_mutations.damage(seed, choices)
    if kind >= 84:
        for _ in range(_count(choices)):
            data = byte_mutations.damage(data, choices)
    return file_mutations.attached(data, choices) if choices.chance(1) else data


def _count(choices: Choices) -> int:
    count = 1
    while count < 8 and choices.chance(40):
        count += 1
    return count


def _anything(choices: Choices, root: tables.Model) -> None:
    flip_field(choices, root)


#: What the tables cannot hold, or one mutation could not do with what another left.
_CANNOT = (ModelError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

Mutation = Callable[[Choices, tables.Model], None]

#: What is done, as often as it stands here.
_MUTATIONS: tuple[Mutation, ...] = (
    *tensor_mutations.MUTATIONS, *node_mutations.MUTATIONS, *graph_mutations.MUTATIONS, *file_mutations.MUTATIONS,
    *[chained] * 3, *[_anything] * 1,
)  # fmt: skip
