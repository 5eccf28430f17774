"""The delegates of one interpreter: those that the application applies, and those that exist for custom ops without a kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from oplet.errors import DelegateApplicationError, DelegateError

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate
    from oplet.plugins.manager import PluginManager
    from oplet.plugins.selection import Preference
    from oplet.runtime.delegation.delegations import Delegations
    from oplet.runtime.delegation.serving_delegates import ServingDelegates
    from oplet.runtime.execution.executor import Executor

__all__ = ["AppliedDelegates"]


class AppliedDelegates:
    """The delegates that are applied to a model, in order. What applies them is imported with the first one.

    Args:
        manager: the plugins that bring delegates for custom ops.
        prefer: the preference where several exist for an op.
        cluster: as for `Delegations`.
        fuse: as for `Delegations`.
    """

    def __init__(
        self,
        manager: PluginManager,
        prefer: Sequence[str] | Mapping[str, str] | Preference | None,
        *,
        cluster: bool,
        fuse: bool,
    ) -> None:
        self._manager = manager
        self._prefer = prefer
        self._cluster = cluster
        self._fuse = fuse
        self._applied: list[tuple[Delegate, Collection[int] | None]] = []
        self._delegations: Delegations | None = None
        self._serving: ServingDelegates | None = None

    @property
    def are_used(self) -> bool:
        """Whether a delegate was ever applied."""
        return self._delegations is not None

    def apply(self, executors: Sequence[Executor], delegate: Delegate, subgraphs: Collection[int] | None = None) -> None:
        """Apply a delegate to the subgraphs of these indices, all of them for None.

        Args:
            executors: the executors of the model's subgraphs.
            delegate: the delegate.
            subgraphs: the indices.

        Raises:
            DelegateApplicationError: it does not suit the graph or the delegates before it; the graph is usable.
            DelegateError: it failed; all delegates were removed.
        """
        if self._delegations is None:
            from oplet.runtime.delegation.delegations import Delegations

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
        """Return the delegates that exist for custom ops and are not applied yet.

        Args:
            ops: names of custom ops that no kernel serves.

        Raises:
            OpletError: as `ServingDelegates.missing`.
        """
        if self._serving is None:
            from oplet.runtime.delegation.serving_delegates import ServingDelegates

            self._serving = ServingDelegates(self._manager, self._prefer)
        return self._serving.missing(ops, [delegate for delegate, _ in self._applied])

    def put_first(self, executors: Sequence[Executor], delegates: Iterable[Delegate]) -> None:
        """Apply delegates before those that are applied.

        What the ones for custom ops serve is of dynamic shape more often than not, which other delegates must know.

        Raises:
            DelegateError: as `apply`.
        """
        before = self._applied[:]
        if before:
            self.remove()
        for delegate in delegates:
            self.apply(executors, delegate)
        for delegate, subgraphs in before:
            self.apply(executors, delegate, subgraphs)
