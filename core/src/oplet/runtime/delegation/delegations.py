"""The delegations of a model: a delegate is applied to one subgraph after the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from oplet.delegates.delegate import Delegate
from oplet.errors import DelegateApplicationError, DelegateError, OpletError
from oplet.model.reachability import named_subgraphs
from oplet.runtime.delegation.decompositions import idle_decompositions
from oplet.runtime.delegation.delegation import Delegation, logger
from oplet.runtime.delegation.inlining import Decompositions
from oplet.runtime.execution.executor import Executor
from oplet.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from oplet.runtime.subgraph import Subgraph

__all__ = ["Delegations"]

#: The prefix of names of subgraphs that only test a delegate's accuracy; they are never delegated.
_VALIDATION_PREFIX = "VALIDATION:"


class Delegations:
    """Applies delegates to a model's subgraphs, and tracks which nodes they have claimed in each.

    Args:
        executors: the executors of all subgraphs, by index.
        cluster: whether partitions may change the order of nodes (LiteRT's delegate clustering).
        fuse: whether a partition may have more than one node.
    """

    def __init__(self, executors: Sequence[Executor], *, cluster: bool, fuse: bool) -> None:
        self._executors = executors
        self._cluster = cluster
        self._fuse = fuse
        self._by_subgraph: dict[int, Delegation] = {}
        self._decompositions = Decompositions(executors[0].session)

    def apply(self, delegate: Delegate, only: Collection[int] | None = None) -> None:
        """Apply a delegate to every subgraph, except decompositions of composites that a kernel or the delegate computes as a whole.

        Args:
            delegate: the delegate.
            only: the indices of the subgraphs to apply it to; None for all.

        Raises:
            DelegateApplicationError: the delegate is incompatible with the graph or with delegates applied before; the graph is usable.
            DelegateError: the delegate failed; all delegates were removed from all subgraphs.
        """
        if not isinstance(delegate, Delegate):
            how = f"load_delegate({delegate!r}) makes one" if isinstance(delegate, str) else "load_delegate makes one from a name"
            raise DelegateError(f"Null delegate. experimental_delegates has {delegate!r}, which is no oplet Delegate; {how}.")
        self._check_indices(only)
        subgraphs = [executor.subgraph for executor in self._executors]
        idle: set[int] | None = None
        for subgraph in _callers_first(subgraphs):
            if only is not None and subgraph.index not in only:
                continue
            if idle is None:
                idle = idle_decompositions(subgraphs, self._executors[0].session.model) if only is None else set()
            if subgraph.name.startswith(_VALIDATION_PREFIX) or subgraph.delegated.skippable or subgraph.index in idle:
                logger.info("Skipping calling ModifyGraphWithDelegate on Subgraph %d: %s", subgraph.index, subgraph.name)
                continue
            try:
                self._delegation_of(subgraph.index).apply(delegate)
            except DelegateApplicationError:
                raise
            except DelegateError:
                self.remove()
                raise
            except OpletError:
                if subgraph.index == 0:
                    raise
                # The file's shapes of a called subgraph may not suffice to prepare it by itself: it runs without the delegate.
            if any(node.op is BuiltinOperator.STABLEHLO_COMPOSITE for node in subgraph.nodes):
                idle = None  # find them again: kernels may have declined composites while this subgraph was prepared

    def remove(self) -> None:
        """Remove all delegates from every subgraph; called subgraphs, which have the higher indices, first."""
        for index in sorted(self._by_subgraph, reverse=True):
            self._by_subgraph[index].remove()

    def _delegation_of(self, index: int) -> Delegation:
        """Return the subgraph's `Delegation`; a new one replaces the subgraph's executor in `Session.runners`."""
        found = self._by_subgraph.get(index)
        if found is None:
            executor = self._executors[index]
            found = self._by_subgraph[index] = Delegation(
                executor, self._executors, self._decompositions, cluster=self._cluster, fuse=self._fuse
            )
            executor.session.runners[index] = found
        return found

    def _check_indices(self, only: Collection[int] | None) -> None:
        if only is not None and not only:
            raise DelegateApplicationError("Active subgraph indices must not be empty.")
        for index in only or ():
            if not 0 <= index < len(self._executors):
                raise DelegateApplicationError(
                    f"Active subgraph index {index} is out of range. The model has {len(self._executors)} subgraphs."
                )


def _callers_first(subgraphs: Sequence[Subgraph]) -> list[Subgraph]:
    """Return the subgraphs in order, but decompositions last: those that are inlined need no delegate of their own."""
    decompositions = {
        called
        for subgraph in subgraphs
        for node in subgraph.nodes
        if node.op is BuiltinOperator.STABLEHLO_COMPOSITE
        for called in named_subgraphs(node.raw_options)
    }
    return sorted(subgraphs, key=lambda subgraph: subgraph.index != 0 and subgraph.index in decompositions)
