"""The report of a delegate's application to a subgraph."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DelegationReport"]


class DelegationReport(NamedTuple):
    """The outcome of applying one delegate to one subgraph.

    Attributes:
        delegate: the delegate's name.
        subgraph: the subgraph's index.
        applied: whether the delegate is applied now.
        error: the reason if it is not, else "".
        nodes: the number of nodes of the plan without delegates.
        partitions: for each of its kernels, the indices of the nodes that it replaces.
        unsupported: the reasons why it did not claim nodes, by node index.
    """

    delegate: str
    subgraph: int
    applied: bool
    error: str
    nodes: int
    partitions: list[list[int]]
    unsupported: dict[int, str]
