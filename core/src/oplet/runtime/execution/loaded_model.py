"""The loaded model of an interpreter: its subgraphs with their executors, and where their plan comes from and goes to.

A plan may come from an interpreter of the same model that was dropped (`memory.remembered`), or from disk (`memory.stored_plan`), in place
of being prepared here.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from oplet.errors import CancelledError
from oplet.model.verify.verifier import signature_faults
from oplet.runtime.blas import KernelNumpySettings
from oplet.runtime.execution.executor import Executor
from oplet.runtime.loading import load_subgraph
from oplet.runtime.memory.remembered import is_left, leave_plan, take_plan
from oplet.runtime.memory.values import weakly
from oplet.texts import LONGEST, plain

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.plugins.manager import PluginManager
    from oplet.runtime.execution.session import Session
    from oplet.runtime.memory.stored_plan import StoredPlans
    from oplet.runtime.subgraph import Subgraph

__all__ = ["LoadedModel", "verify_once"]


class LoadedModel:
    """The subgraphs of a model, as one interpreter has them.

    Args:
        session: the state that the subgraphs share.
        manager: the plugins, which give advice on an op that no kernel serves.
        settings: a text of what its plan depends on besides the session's settings and the model; None where it shares none.
        stores: whether its plan may come from disk, and go there.

    Attributes:
        session: the state that the subgraphs share.
        manager: the plugins.
        stored_plans: the access to the plan on disk, or None.
        has_plan: whether a plan was found, in memory or on disk, which proves that the model was verified before.
        subgraphs: the subgraphs, by index.
        executors: the executor of each.
    """

    def __init__(
        self,
        session: Session,
        manager: PluginManager,
        *,
        settings: str | None = None,
        stores: bool = False,
    ) -> None:
        self.session = session
        self.manager = manager
        self.stored_plans: StoredPlans | None = None
        #: What must be equal for another interpreter of the model to take over this one's arrays and thunks; None where it may not.
        key = settings, stores, session.num_threads, session.default_delegates, session.kept, session.limits
        self._plan_key = None if settings is None else key
        if settings is not None and stores:
            from oplet.runtime.memory.stored_plan import StoredPlans

            self.stored_plans = StoredPlans(session.model, manager, settings)
        is_found = self._plan_key is not None and is_left(self._plan_key, session.model)
        self.has_plan = is_found or (self.stored_plans is not None and self.stored_plans.find())
        self.subgraphs: list[Subgraph] = []
        self.executors: list[Executor] = []

    def load(self) -> None:
        """Load the subgraphs, and find and initialize their nodes' kernels, unless a plan was found that runs the model without them.

        Raises:
            OpletError: a built-in operator has no kernel, or cannot be initialized.
        """
        session, model = self.session, self.session.model
        for index, table in enumerate(model.lazy_root.subgraphs or []):
            subgraph = load_subgraph(model, index, table, session.memory)
            self.subgraphs.append(subgraph)
            self.executors.append(Executor(session, subgraph))
        session.subgraphs = self.subgraphs
        session.runners = list(self.executors)
        if self.has_plan:
            self._put_off()
        else:
            self._resolve()

    def _put_off(self) -> None:
        """Find the kernels when a node is asked for its own."""
        resolve = weakly(self._resolve_late)
        for node in self.subgraphs[0].nodes:
            node.resolve_late(resolve)

    def _resolve(self) -> None:
        """Find each node's registration (its kernel), and initialize it."""
        from oplet.runtime.execution.fallback import initialize  # imported late, both: a plan from disk needs neither
        from oplet.runtime.resolving import resolve_subgraphs

        model = self.session.model
        resolve_subgraphs(self.subgraphs, model.lazy_root, self.session.resolver, self.manager.advice, model.name)
        for executor in self.executors:
            initialize(executor.context, executor.subgraph.nodes)

    def _resolve_late(self) -> None:
        """Find the nodes' kernels and prepare the nodes, in an interpreter that has run by thunks from disk, without kernels."""
        with KernelNumpySettings():
            self._resolve()
            self.rebind()

    def rebind(self) -> None:
        """Let the nodes' own kernels run from now on, in place of a plan from disk (thunks that another process has stored)."""
        if self.stored_plans is not None:
            self.stored_plans.forget()
        for executor in self.executors:
            executor.rebind()

    def part(self) -> None:
        """Let the nodes' own kernels run, and neither leave nor take a plan from now on: delegates or the application change this one."""
        self._plan_key = None
        self.rebind()

    def adopt_plan(self) -> bool:
        """Run by the plan that a dropped interpreter has left, or another process has stored, if there is one and this interpreter's
        subgraph was neither prepared nor resized; return whether it does.
        """
        subgraph, session, stored = self.subgraphs[0], self.session, self.stored_plans
        if subgraph.generation or self._plan_key is None or len(self.subgraphs) > 1:
            return False
        session.enter(subgraph)
        try:
            left = take_plan(self._plan_key, session.model, subgraph)
            if left is not None:
                left.move_to(subgraph)
                session.take_over(left.memory, left.resources)
            elif not self.has_plan or stored is None or not stored.adopt(subgraph):
                return False
            if subgraph.stored is not None:
                self.stored_plans = None
                self._put_off()
                subgraph.stored.attach(weakly(self.executors[0].rebind, constants=True))
            [segment] = subgraph.segments
            for tensor, life in segment.requests:
                if life.last == segment.end:  # the caller may read it before the first invoke
                    tensor.data.fill(0)
        finally:
            session.leave()
        subgraph.generation += 1
        subgraph.ready = True
        return True

    def leave_plan(self) -> bool:
        """Leave the bound plan (arrays, thunks) of this interpreter, which is dropped, to the next one of the same model; False if
        another must not use it.
        """
        session = self.session
        if self._plan_key is None or len(self.subgraphs) != 1 or session.num_threads > 1 or session.is_running:
            return False
        return leave_plan(self._plan_key, session.model, self.subgraphs[0], session.memory, session.resources)

    def store_plan(self) -> None:
        """Store the plan on disk for other processes, if the model was opened before (which is noted on disk).

        This is done within a run, after its outputs are computed; `cancel` ends it, and nothing is stored.
        """
        if self.stored_plans is None or not self.stored_plans.is_open:
            return
        self.session.enter(self.subgraphs[0])
        try:
            self.stored_plans.store(self.subgraphs, self.session.resources)
        except CancelledError:
            pass
        finally:
            self.session.leave()


def verify_once(model: Model, *, is_known: bool) -> bool:
    """Verify a model that no interpreter has verified before, and warn of its signatures' faults; return whether it was new.

    Args:
        model: the model.
        is_known: whether a plan from disk proves that another process has verified the same bytes, so that it need not be done.
    """
    is_new = not model.is_verified
    if is_new:
        if not is_known:
            from oplet.model.verify.verifier import verify

            verify(model)
        model.set_verified()
    for fault in signature_faults(model):
        # Of the line where the interpreter is made: `collecting_rarely` is between.
        warnings.warn(plain(f"{model.name}: {fault}", LONGEST), stacklevel=4)
    return is_new
