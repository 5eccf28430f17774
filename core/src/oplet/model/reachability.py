"""Which subgraphs of a model can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from oplet.schema import tables
from oplet.schema.table import Table

__all__ = ["entry_subgraphs", "reached", "read_outside", "subgraph_fields"]


def entry_subgraphs(root: tables.Model) -> list[int]:
    """The subgraphs that a caller can run: the first one and those of signatures."""
    return sorted({0, *(signature.subgraph_index for signature in root.signature_defs or [])})


def read_outside(root: tables.Model, subgraph_index: int) -> list[int]:
    """The tensors of a subgraph that a caller reads: its outputs, and what signatures give besides them.

    Quantizers put nodes behind an output and leave the signature at the tensor where it was.
    """
    subgraph = (root.subgraphs or [])[subgraph_index]
    found: list[int] = [] if subgraph.outputs is None else subgraph.outputs.tolist()
    for signature in root.signature_defs or []:
        if signature.subgraph_index == subgraph_index:
            found.extend(entry.tensor_index for entry in signature.outputs or [])
    return [index for index in dict.fromkeys(found) if 0 <= index < len(subgraph.tensors or [])]


def reached(subgraphs: Sequence[tables.SubGraph], roots: Iterable[int]) -> set[int]:
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
                for options, field in subgraph_fields(node):
                    waiting.extend(np.atleast_1d(getattr(options, field)).tolist())
    return seen


def subgraph_fields(node: tables.Operator) -> Iterator[tuple[Table, str]]:
    """The options of a node that name subgraphs: table and field."""
    for options in (node.builtin_options, node.builtin_options_2):
        if options is None:
            continue
        for field in options.fields:
            names = field.name == "subgraph" or field.name.endswith(("subgraph_index", "subgraph_indices"))
            if (names or field.name == "called_computations") and getattr(options, field.name) is not None:
                yield options, field.name
