"""Which subgraphs of a model can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from oplet.schema import tables
from oplet.schema.table import Table

__all__ = ["entry_subgraphs", "named_subgraphs", "observable_tensors", "reachable_subgraphs", "subgraph_fields"]

_NAMES = ("subgraph", "called_computations")
_FIELDS: dict[type[Table], tuple[str, ...]] = {}


def entry_subgraphs(root: tables.Model) -> list[int]:
    """The subgraphs that a caller can run: the first one and those of signatures."""
    return sorted({0, *(signature.subgraph_index for signature in root.signature_defs or [])})


def observable_tensors(root: tables.Model, subgraph_index: int) -> list[int]:
    """The tensors of a subgraph that a caller reads: its outputs, and what signatures give besides them.

    Quantizers put nodes behind an output and leave the signature at the tensor where it was.
    """
    subgraph = (root.subgraphs or [])[subgraph_index]
    found: list[int] = [] if subgraph.outputs is None else subgraph.outputs.tolist()
    for signature in root.signature_defs or []:
        if signature.subgraph_index == subgraph_index:
            found.extend(entry.tensor_index for entry in signature.outputs or [])
    return [index for index in dict.fromkeys(found) if 0 <= index < len(subgraph.tensors or [])]


def reachable_subgraphs(subgraphs: Sequence[tables.SubGraph], roots: Iterable[int]) -> set[int]:
    """The subgraphs that nodes of `roots` call, and those that they call, and so on, `roots` included."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        index = waiting.pop()
        if index not in seen and 0 <= index < len(subgraphs):
            seen.add(index)
            if len(seen) == len(subgraphs):
                break
            for node in subgraphs[index].operators or []:
                for options in (node.builtin_options, node.builtin_options_2):
                    waiting.extend(named_subgraphs(options))
    return seen


def subgraph_fields(node: tables.Operator) -> Iterator[tuple[Table, str]]:
    """The options of a node that name subgraphs: table and field."""
    for options in (node.builtin_options, node.builtin_options_2):
        if options is None:
            continue
        for field in _fields(type(options)):
            if getattr(options, field) is not None:
                yield options, field


def named_subgraphs(options: Table | None) -> Iterator[int]:
    """The subgraphs that a node with these options calls."""
    for field in () if options is None else _fields(type(options)):
        if (named := getattr(options, field)) is not None:
            yield from np.atleast_1d(named).tolist()


def _fields(cls: type[Table]) -> tuple[str, ...]:
    """The fields of a table of options that name subgraphs."""
    fields = _FIELDS.get(cls)
    if fields is None:
        names = [field.name for field in cls.fields]
        fields = _FIELDS[cls] = tuple(
            name for name in names if name in _NAMES or name.endswith(("subgraph_index", "subgraph_indices"))
        )
    return fields
