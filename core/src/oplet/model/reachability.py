"""Reachability of subgraphs: those that callers run, and those that these call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from oplet.schema import tables
from oplet.schema.columns import as_lazy_tables
from oplet.schema.table import Table

__all__ = [
    "called_subgraphs",
    "entry_subgraphs",
    "made_tensors",
    "named_calls",
    "named_subgraphs",
    "observable_tensors",
    "reachable_subgraphs",
    "reached",
    "subgraph_fields",
]

_NAMES = ("subgraph", "called_computations")
_FIELDS: dict[type[Table], tuple[str, ...]] = {}


def entry_subgraphs(root: tables.Model) -> list[int]:
    """Return the indices of the subgraphs that callers can run: the first one and those of signatures."""
    return sorted({0, *(signature.subgraph_index for signature in root.signature_defs or [])})


def observable_tensors(root: tables.Model, subgraph_index: int) -> list[int]:
    """Return the indices of the tensors of a subgraph that callers can read: its outputs and those of its signatures.

    They may differ: quantizers append nodes to an output and leave the signature's output at the earlier tensor.
    """
    subgraph = (root.subgraphs or [])[subgraph_index]
    found: list[int] = [] if subgraph.outputs is None else subgraph.outputs.tolist()
    for signature in root.signature_defs or []:
        if signature.subgraph_index == subgraph_index:
            found.extend(entry.tensor_index for entry in signature.outputs or [])
    return [index for index in dict.fromkeys(found) if 0 <= index < len(subgraph.tensors or [])]


def made_tensors(subgraph: tables.SubGraph) -> set[int]:
    """Return the indices of the tensors that nodes of a subgraph write; they are no constants, even if they have data in the file."""
    return set(chain.from_iterable(filter(None, as_lazy_tables(subgraph.operators).column("outputs"))))


def reached(roots: Iterable[int], count: int, called: Callable[[int], Iterable[int]]) -> set[int]:
    """Return the indices of the subgraphs, `count` in all, that `roots` call, directly or indirectly, including `roots`.

    Args:
        roots: the indices to begin with.
        count: the number of subgraphs; other indices are ignored.
        called: returns the indices that the subgraph of an index calls.
    """
    seen: set[int] = set()
    waiting = list(roots)
    while waiting and len(seen) < count:
        index = waiting.pop()
        if index not in seen and 0 <= index < count:
            seen.add(index)
            if len(seen) < count:
                waiting.extend(called(index))
    return seen


def reachable_subgraphs(subgraphs: Sequence[tables.SubGraph], roots: Iterable[int]) -> set[int]:
    """Return the indices of the subgraphs that `roots` call, directly or indirectly, including `roots`."""
    return reached(roots, len(subgraphs), lambda index: _calls(subgraphs[index]))


def called_subgraphs(root: tables.Model) -> set[int]:
    """Return the indices of the subgraphs that nodes of a model call, or have as their decomposition."""
    return {index for subgraph in root.subgraphs or [] for index in _calls(subgraph)}


def _calls(subgraph: tables.SubGraph) -> Iterator[int]:
    rows = as_lazy_tables(subgraph.operators)
    for options in chain(rows.column("builtin_options"), rows.column("builtin_options_2")):
        yield from named_subgraphs(options)


def subgraph_fields(node: tables.Operator) -> Iterator[tuple[Table, str]]:
    """Yield the fields of a node's options that refer to subgraphs, as pairs (options table, field name)."""
    for options in (node.builtin_options, node.builtin_options_2):
        if options is None:
            continue
        for field in _fields(type(options)):
            if getattr(options, field) is not None:
                yield options, field


def named_subgraphs(options: Table | None) -> Iterator[int]:
    """Yield the indices of the subgraphs that a node with these options calls."""
    return iter(()) if options is None else (index for _, index in named_calls(options))


def named_calls(options: Table) -> Iterator[tuple[str, int]]:
    """Yield the fields of an options table that refer to subgraphs, each with the index of one of them."""
    for field in _fields(type(options)):
        if (named := getattr(options, field)) is not None:
            yield from ((field, index) for index in np.atleast_1d(named).tolist())


def _fields(cls: type[Table]) -> tuple[str, ...]:
    """Return the fields of an options table that refer to subgraphs."""
    fields = _FIELDS.get(cls)
    if fields is None:
        names = [field.name for field in cls.fields]
        fields = _FIELDS[cls] = tuple(
            name for name in names if name in _NAMES or name.endswith(("subgraph_index", "subgraph_indices"))
        )
    return fields
