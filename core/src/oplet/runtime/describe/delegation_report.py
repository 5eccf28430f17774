"""What became of a delegate that was applied to a subgraph."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DelegationReport"]


class DelegationReport(NamedTuple):
    """What became of applying one delegate to one subgraph.

    Attributes:
        delegate: the delegate's name.
        subgraph: the subgraph's index.
        applied: whether what it claimed is in force.
        error: why not, "" if it is.
        nodes: nodes of the plan when it was asked.
        partitions: the nodes that each of its kernels replaces.
        unsupported: why it left nodes alone, by node.
    """

    delegate: str
    subgraph: int
    applied: bool
    error: str
    nodes: int
    partitions: list[list[int]]
    unsupported: dict[int, str]
