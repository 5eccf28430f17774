"""Mutation of one or two valid models into a broken one.

The mutation depends only on the seed models and a number, so that the number identifies a bug. Most mutations change the decoded tables: the
file stays a valid FlatBuffer, and the change reaches the planner and the kernels. Some are followed by repairs (the buffer of a constant grows
with its shape), because models that the verifier refuses test nothing beyond it. The rest change bytes.
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
    """The mutation of a seed model with this number.

    Args:
        name: the seed's name, on which the mutation depends too.
        other: a second seed, parts of which may be spliced into the first.
    """
    return mutate(seed, SeededChoices(f"{name} {number}"), other)


def mutate(seed: bytes, choices: Choices, other: bytes = b"") -> bytes:
    """A mutated model: its tables, its bytes, or both are changed, and sometimes two models are spliced."""
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


#: Errors of mutations that cannot be encoded, or that do not work after another one.
_CANNOT = (ModelError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

Mutation = Callable[[Choices, tables.Model], None]

#: The mutations; repeated ones are chosen more often.
_MUTATIONS: tuple[Mutation, ...] = (
    *tensor_mutations.MUTATIONS, *node_mutations.MUTATIONS, *graph_mutations.MUTATIONS, *file_mutations.MUTATIONS,
    *[chained] * 3, *[_anything] * 1,
)  # fmt: skip
