"""The models of the sweep by operator and number: single edits of every seed and recipe, and edits together, the same on every machine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import islice

import numpy as np
from tests.delegate_sweep.drafts import Draft, Edit, recipe_drafts, seed_drafts
from tests.delegate_sweep.edits import Named, edits

from oplet_builtin_ops import VERSIONS

__all__ = ["OPERATORS", "mixed", "singles"]

#: What has a seed of one node. The others call subgraphs or hold resources, and no delegate claims them.
OPERATORS = tuple(op for op in VERSIONS if op in seed_drafts())

#: Edits that are tried together, more often those that decide which of an engine's kernels runs.
_KINDS = ("options", "options", "rank", "rank", "type", "type", "size", "scale", "constant", "operands", "values", "version")


@cache
def _drafts(op: str) -> tuple[list[Draft], list[Draft]]:
    return seed_drafts()[op], list(recipe_drafts(op))


@cache
def _edits(op: str, recipe: bool, place: int) -> dict[str, list[Named]]:
    with np.errstate(all="ignore"):
        return edits(_drafts(op)[recipe][place])


def singles(op: str) -> Iterator[Draft]:
    """Every seed and recipe of an operator, and every seed with one edit."""
    own, recipes = _drafts(op)
    yield from own
    yield from recipes
    for place, draft in enumerate(own):
        for changes in _edits(op, False, place).values():
            for label, change in changes:
                if (changed := _changed(draft, label, change)) is not None:
                    yield changed


def mixed(op: str, number: int) -> Draft | None:
    """A seed or a recipe of an operator with one to four edits; None where they do not go together."""
    rng = random.Random(f"{op} {number}")
    own, recipes = _drafts(op)
    recipe = bool(recipes) and rng.random() < 0.4
    drafts = recipes if recipe else own
    place = rng.randrange(len(drafts))
    draft, found = drafts[place], _edits(op, recipe, place)
    for _ in range(rng.choice((1, 2, 2, 2, 3, 3, 4))):
        changes = found[rng.choice(_KINDS)]
        if not changes:
            continue
        label, change = rng.choice(changes)
        changed = _changed(draft, label, change)
        if changed is None:
            return None
        draft = changed
    return draft


def _changed(draft: Draft, label: str, change: Edit) -> Draft | None:
    """The draft with an edit, None where they do not go together."""
    changed = draft.copy(label)
    try:
        change(changed)
    except (IndexError, ValueError, TypeError, OverflowError):
        return None
    return changed


def some(op: str, count: int, first: int = 0) -> Iterator[Draft]:
    """The first mixed drafts of an operator."""
    yield from islice((draft for number in range(first, first + count) if (draft := mixed(op, number)) is not None), count)
