"""The delegates of one interpreter: those that the application applies, and those that exist for custom ops without a kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from oplet.errors import DelegateApplicationError, DelegateError
from oplet.runtime.delegation.delegations import Delegations
from oplet.runtime.delegation.serving_delegates import ServingDelegates

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate
    from oplet.plugins.manager import PluginManager
    from oplet.plugins.selection import Preference
    from oplet.runtime.execution.executor import Executor

__all__ = ["AppliedDelegates"]


class AppliedDelegates:
    """The delegates that are applied to a model, in order.

    Args:
        manager: the plugins that bring delegates for custom ops.
        prefer: the plugins to use where several have a delegate for an op.
        cluster: whether partitions may change the order of nodes (LiteRT's delegate clustering).
        fuse: whether a partition may have more than one node.
    """

    def __init__(
        self,
        manager: PluginManager,
        prefer: Sequence[str] | Mapping[str, str] | Preference | None,
        *,
        cluster: bool,
        fuse: bool,
    ) -> None:
        self._cluster = cluster
        self._fuse = fuse
        self._applied: list[tuple[Delegate, Collection[int] | None]] = []
        self._delegations: Delegations | None = None
        self._serving = ServingDelegates(manager, prefer)

    def apply(self, executors: Sequence[Executor], delegate: Delegate, subgraphs: Collection[int] | None = None) -> None:
        """Apply a delegate, which claims nodes, to subgraphs of the model.

        Args:
            executors: the executors of the model's subgraphs.
            delegate: the delegate.
            subgraphs: the subgraphs' indices; None for all.

        Raises:
            DelegateApplicationError: the delegate is incompatible with the graph or with delegates applied before; the graph is usable.
            DelegateError: the delegate failed; all delegates were removed.
        """
        if self._delegations is None:
            self._delegations = Delegations(executors, cluster=self._cluster, fuse=self._fuse)
        try:
            self._delegations.apply(delegate, subgraphs)
        except DelegateApplicationError:
            raise
        except DelegateError:
            self._applied.clear()
            raise
        self._applied.append((delegate, subgraphs))

    def remove(self) -> None:
        """Remove all delegates, if there are any."""
        if self._delegations is not None:
            self._delegations.remove()
            self._applied.clear()

    def missing(self, ops: Iterable[str]) -> list[Delegate]:
        """Return new delegates for custom ops, where installed packages have some that are not applied yet.

        Args:
            ops: names of custom ops that no kernel serves.

        Raises:
            OpletError: several delegates exist for an op, or one cannot be imported or created.
        """
        return self._serving.missing(ops, [delegate for delegate, _ in self._applied])

    def put_first(self, executors: Sequence[Executor], delegates: Iterable[Delegate]) -> None:
        """Apply delegates for custom ops, and then once more those that are applied already.

        Custom ops often have outputs of dynamic shape, which the other delegates must know of before they claim nodes.

        Raises:
            DelegateError: a delegate failed; all delegates were removed.
        """
        before = self._applied[:]
        if before:
            self.remove()
        for delegate in delegates:
            self.apply(executors, delegate)
        for delegate, subgraphs in before:
            self.apply(executors, delegate, subgraphs)
