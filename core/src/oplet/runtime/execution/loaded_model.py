"""The loaded model of an interpreter: its subgraphs with their executors, and where their plan comes from and goes to.

A plan may come from disk (`memory.stored_plan`) or from an interpreter of the same model that was dropped (`memory.remembered`), in place of
being prepared here.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from oplet.errors import CancelledError
from oplet.model.verify.verifier import signature_faults
from oplet.ops.tensor import Allocation
from oplet.runtime.blas import KernelNumpySettings
from oplet.runtime.execution.executor import Executor
from oplet.runtime.loading import load_subgraph
from oplet.runtime.memory.accounting import MemoryAccount
from oplet.runtime.memory.remembered import remember_plan, take_plan
from oplet.runtime.memory.values import weakly
from oplet.texts import LONGEST, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from oplet.model.model import Model
    from oplet.ops.serving.registration import Op
    from oplet.plugins.manager import PluginManager
    from oplet.runtime.execution.session import Session
    from oplet.runtime.memory.stored_plan import StoredPlans
    from oplet.runtime.subgraph import Subgraph

__all__ = ["STORE_VARIABLE", "LoadedModel", "stored_plans_of", "verify_once"]

#: The environment variable that switches plans on disk off, with "off".
STORE_VARIABLE = "OPLET_PLANS"


class LoadedModel:
    """The subgraphs of a model, as one interpreter has them.

    Args:
        session: the state that the subgraphs share.
        advice: returns advice on an op that no kernel serves, for errors.
        stored_plans: the access to the plan on disk; None where the interpreter neither takes nor stores one.
        shares_plans: whether it leaves its bound plan (arrays, thunks) to the next interpreter of the model, and takes one.

    Attributes:
        session: the state that the subgraphs share.
        advice: returns advice on an op that no kernel serves.
        stored_plans: the access to the plan on disk, or None.
        shares_plans: whether bound plans are left and taken.
        subgraphs: the subgraphs, by index.
        executors: the executor of each.
    """

    def __init__(
        self,
        session: Session,
        advice: Callable[[Op | int], str],
        *,
        stored_plans: StoredPlans | None = None,
        shares_plans: bool = False,
    ) -> None:
        self.session = session
        self.advice = advice
        self.stored_plans = stored_plans
        self.shares_plans = shares_plans
        self.subgraphs: list[Subgraph] = []
        self.executors: list[Executor] = []

    def load(self) -> None:
        """Load the subgraphs, and find and initialize their nodes' kernels, unless a plan from disk runs the model without them.

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
        if self.stored_plans is not None and self.stored_plans.has_found:
            resolve = weakly(self._resolve_late)
            for node in self.subgraphs[0].nodes:
                node.resolve_late(resolve)
        else:
            self._resolve()

    def _resolve(self) -> None:
        """Find each node's registration (its kernel), and initialize it."""
        from oplet.runtime.execution.fallback import initialize  # imported late, both: a plan from disk needs neither
        from oplet.runtime.resolving import resolve_subgraphs

        model = self.session.model
        resolve_subgraphs(self.subgraphs, model.lazy_root, self.session.resolver, self.advice, model.name)
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

    def adopt_stored(self) -> bool:
        """Let the model run by its plan from disk (prepared by another process), if there is one; return whether it does."""
        if self.stored_plans is None:
            return False
        executor = self.executors[0]
        self.session.enter(executor.subgraph)
        try:
            return self.stored_plans.adopt(executor.subgraph, weakly(executor.rebind, constants=True))
        finally:
            self.session.leave()

    def adopt_remembered(self) -> bool:
        """Take over the prepared arrays and functions of a dropped interpreter; False if there are none, or this one is prepared or
        resized.
        """
        if not self._may_share or self.subgraphs[0].generation:
            return False
        (subgraph,), session = self.subgraphs, self.session
        plan = take_plan(self._plan_key, session.model, subgraph)
        if plan is None:
            return False
        from oplet.runtime.execution.folding import attach_folded

        session.enter(subgraph)
        try:
            subgraph.generation += 1
            plan.adopt(subgraph, session.memory)
            session.resources = plan.resources
            attach_folded(self.executors[0].context)
        finally:
            session.leave()
        subgraph.ready = True
        return True

    def leave_plan(self, *, closed: bool) -> bool:
        """Leave the bound plan (arrays, thunks) to the next interpreter of the same model, if another may use it.

        Args:
            closed: whether this interpreter is being closed; otherwise it is being dropped.

        Returns:
            Whether the plan was left. A closed interpreter then has a new subgraph without memory, to describe its model.
        """
        session = self.session
        if not self._may_share or session.num_threads > 1 or session.is_running:
            return False
        [subgraph] = self.subgraphs
        if subgraph.stored is not None:
            return not closed and subgraph.ready and subgraph.stored.leave()
        if not remember_plan(self._plan_key, session.model, subgraph, session.memory, session.resources, closed=closed):
            return False
        if closed:
            self._part_from(subgraph)
        return True

    @property
    def _may_share(self) -> bool:
        return self.shares_plans and len(self.subgraphs) == 1

    @property
    def _plan_key(self) -> tuple[Any, ...]:
        """The settings that have to be equal for another interpreter of the model to take over this one's arrays and thunks."""
        session = self.session
        return session.resolver, session.num_threads, session.default_delegates, session.kept, session.limits

    def _loaded_anew(self) -> Subgraph:
        """Return the model's only subgraph, loaded once more as the file has it."""
        model = self.session.model
        [table] = model.lazy_root.subgraphs or []
        return load_subgraph(model, 0, table, MemoryAccount(self.session.limits, model))

    def _part_from(self, left: Subgraph) -> None:
        """Replace the subgraph, which was left to the next interpreter, by a new one without memory."""
        session, own = self.session, self._loaded_anew()
        for tensor, its in zip(own.tensors, left.tensors):
            tensor.take_over(its)
            if tensor.allocation is not Allocation.CONSTANT:
                tensor.set_memory(None)
        for node, its_node in zip(own.nodes, left.nodes):
            node.registration = its_node.registration
        session.drop_references()
        self.subgraphs[:], self.executors[:] = [own], [Executor(session, own)]
        session.subgraphs, session.runners = self.subgraphs, list(self.executors)

    def store_plan(self) -> None:
        """Store the plan on disk for other processes, if the model was opened before (which is noted on disk).

        This is done within a run, after its outputs are computed; `cancel` ends it, and nothing is stored.
        """
        if self.stored_plans is None or not self.stored_plans.is_open:
            return
        self.session.enter(self.subgraphs[0])
        try:
            self.stored_plans.store(self.subgraphs, self.session.resources, lambda: self._loaded_anew().tensors)
        except CancelledError:
            pass
        finally:
            self.session.leave()


def stored_plans_of(model: Model, manager: PluginManager, prefer: Any) -> StoredPlans | None:
    """Return the access to the model's plan on disk; None where OPLET_PLANS is "off", or the plugins cannot be identified in another
    process, as in builds.
    """
    if os.environ.get(STORE_VARIABLE, "").lower() == "off" or manager.recipe() is None:
        return None
    from oplet.runtime.memory.stored_plan import StoredPlans

    return StoredPlans(model, manager, prefer)


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
