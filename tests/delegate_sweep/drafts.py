"""A model of one node as a draft: tensors, node and options, that edits change before it is written."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from fuzz.seed_ops import Seed, seeds
from tests.everywhere.kit import Arg, Kit
from tests.everywhere.recipes import KINDS, RECIPES

from oplet import ModelBuilder, TensorType
from oplet.ops.tensor import tensor_type
from oplet.schema.table import Table
from oplet_builtin_ops import VERSIONS
from oplet_testing.one_op import Spec

__all__ = ["Draft", "Edit", "recipe_drafts", "seed_drafts"]


@dataclass
class Draft:
    """A model of one node.

    Attributes:
        tensors: each once, its type a `TensorType`.
        inputs: the node's, as places among the tensors; None for one that is left out.
        outputs: likewise.
    """

    name: str
    op: str
    tensors: list[Spec]
    inputs: list[int | None]
    outputs: list[int]
    options: Table | None
    version: int

    def copy(self, label: str) -> Draft:
        """Another one, to be changed."""
        options = copy.deepcopy(self.options)
        return Draft(
            f"{self.name} | {label}", self.op, list(self.tensors), list(self.inputs), list(self.outputs), options, self.version
        )

    def to_bytes(self) -> bytes:
        """The model. Raises whatever the builder raises where a draft makes no model."""
        builder = ModelBuilder(self.op)
        graph = builder.add_subgraph()
        for number, spec in enumerate(self.tensors):
            graph.add_tensor(
                f"t{number}", spec.type, spec.shape, data=spec.data, scale=spec.scale, zero_point=spec.zero_point,
                quantized_dimension=spec.axis, is_variable=spec.variable, sparsity=spec.sparsity,
            )  # fmt: skip
        given = [place for place in dict.fromkeys(self.inputs) if place is not None]
        graph.set_inputs(*(i for i in given if self.tensors[i].data is None and not self.tensors[i].variable))
        graph.set_outputs(*dict.fromkeys(self.outputs))
        graph.add_operator(
            self.op, [-1 if i is None else i for i in self.inputs], self.outputs, self.options, version=self.version
        )
        return builder.to_bytes()


Edit = Callable[[Draft], None]


def _spec(operand: object) -> Spec:
    spec = operand if isinstance(operand, Spec) else Spec(np.asarray(operand).dtype, np.shape(operand), data=operand)
    return spec._replace(type=tensor_type(spec.type), shape=tuple(spec.shape))


def _of_seed(seed: Seed) -> Draft:
    tensors = [_spec(operand) for operand in seed.inputs if operand is not None]
    places = iter(range(len(tensors)))
    inputs = [None if operand is None else next(places) for operand in seed.inputs]
    outputs = [len(tensors) + i for i in range(len(seed.outputs))]
    tensors += [_spec(spec) for spec in seed.outputs]
    version = VERSIONS[seed.op][1]
    return Draft(f"{seed.op} {seed.label}".strip(), seed.op, tensors, inputs, outputs, seed.options, version)


@cache
def seed_drafts() -> dict[str, list[Draft]]:
    """The drafts of the fuzzer's seeds, by operator."""
    found: dict[str, list[Draft]] = {}
    for seed in seeds():
        found.setdefault(seed.op, []).append(_of_seed(seed))
    return found


class _DraftingKit(Kit):
    """A recipe's kit that keeps drafts in place of models."""

    def add(self, inputs, outputs, options=None, label=""):  # type: ignore[no-untyped-def]
        tensors: list[Spec] = []
        places: list[int | None] = []
        for arg in (*inputs, *outputs):
            places.append(None if arg is None else len(tensors))
            if arg is not None:
                tensors.append(_of_arg(arg))
        name = " ".join(part for part in (self.op, str(self.kind), label or self.label) if part)
        made = [place for place in places[len(inputs) :] if place is not None]
        self.made.append(Draft(name, self.op, tensors, places[: len(inputs)], made, options, VERSIONS[self.op][1]))  # type: ignore[arg-type]


def _of_arg(arg: Arg) -> Spec:
    return Spec(arg.kind.type, tuple(arg.shape), scale=arg.scale, zero_point=arg.zero_point, axis=arg.axis, data=arg.data)


def recipe_drafts(op: str) -> Iterator[Draft]:
    """The drafts of an operator's recipe: every type, ranks up to 9, empty ones."""
    if op in RECIPES:
        for kind in KINDS:
            kit = _DraftingKit(op, kind)
            RECIPES[op](kit)
            yield from kit.made  # type: ignore[misc]


def is_index(spec: Spec) -> bool:
    """Whether a tensor may say what is to be done rather than what it is done to."""
    return spec.type in (TensorType.INT32, TensorType.INT64) and spec.scale is None
