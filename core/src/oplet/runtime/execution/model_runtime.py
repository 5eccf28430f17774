"""The base class of the interpreter: loads, resizes, feeds, runs and reads a model's subgraphs, each by its index."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.errors import (
    InvokeError,
    LimitError,
    OpletError,
    PrepareError,
    StateError,
    TensorError,
    UnservedNodeError,
    failures,
    text_of,
)
from oplet.ops.context import EnsureError
from oplet.ops.node import Unresolved
from oplet.ops.tensor import Allocation, Tensor
from oplet.runtime.describe.descriptions import Descriptions
from oplet.runtime.execution.executor import Executor
from oplet.runtime.execution.session import Backend, Session
from oplet.runtime.loading import load_subgraph
from oplet.runtime.memory.accounting import MemoryAccount
from oplet.runtime.memory.buffer_handles import ensure_readable
from oplet.runtime.memory.letting_go import weakly
from oplet.runtime.memory.remembered import remember_plan, take_plan
from oplet.runtime.memory.values import as_tensor_value
from oplet.runtime.memory.views import Views
from oplet.runtime.subgraph import Subgraph
from oplet.runtime.threads.numpy_settings import KernelNumpySettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet.plugins.manager import PluginManager
    from oplet.runtime.memory.stored.stored_plan import StoredPlans

__all__ = ["ModelRuntime"]


class ModelRuntime(Descriptions):
    """The part of an interpreter that runs its subgraphs, each by its index."""

    #: Whether a delegate's outputs stay in its buffers after `invoke`, and are copied when they are read.
    allow_buffer_handle_output: bool = False

    _manager: PluginManager
    _session: Session
    #: Whether it leaves a bound plan to others, and takes one (`memory.remembered`).
    _shares_plans: bool = False
    #: Its access to the plan on disk; None for an interpreter that neither takes nor stores one.
    _stored_plans: StoredPlans | None = None

    def __init__(self) -> None:
        self._closed = False
        self._subgraphs = []
        self._executors: list[Executor] = []
        self._views = Views()
        self._backends: dict[int, Backend] = {}  # by the subgraph that they run asynchronously

    def _load_subgraphs(self) -> None:
        session, root = self._session, self._model.lazy_root
        for index, table in enumerate(root.subgraphs or []):
            subgraph = load_subgraph(self._model, index, table, session.memory)
            self._subgraphs.append(subgraph)
            self._executors.append(Executor(session, subgraph))
        session.subgraphs = self._subgraphs
        session.runners = list(self._executors)
        if self._stored_plans is not None and self._stored_plans.has_found:
            unresolved = Unresolved(weakly(self._resolve_late))
            for node in self._subgraphs[0].nodes:
                node.registration = unresolved
            return
        try:
            self._resolve()
        except OpletError:
            self.close()
            raise

    def _resolve(self) -> None:
        """Give the nodes their registrations, and initialize them."""
        from oplet.runtime.execution.initialization import initialize  # imported late, both: a plan from disk needs neither
        from oplet.runtime.resolving import resolve_subgraphs

        resolve_subgraphs(self._subgraphs, self._model.lazy_root, self._session.resolver, self._manager.advice, self._model.name)
        for executor in self._executors:
            initialize(executor.context, executor.subgraph.nodes)

    def _resolve_late(self) -> None:
        """Give the nodes their registrations, and prepare them, in an interpreter that has run without."""
        with KernelNumpySettings():
            self._resolve()
            self._rebind()

    def _rebind(self) -> None:
        """Have the nodes' own thunks run from now on, in place of a plan from disk."""
        if self._stored_plans is not None:
            self._stored_plans.forget()
        for executor in self._executors:
            executor.rebind()

    def _allocate(self, subgraph_index: int) -> None:
        self._ensure_idle()
        subgraph = self._subgraph(subgraph_index)
        if not subgraph.ready:
            self._ensure_open()
            self._model.check_files()
            if self._stored_plans is not None and self._adopt_stored(self._stored_plans):
                return
            from oplet.runtime.resolving import running_nodes, unresolved, unserved_custom_ops, unserved_op

            ops = unserved_custom_ops(self._subgraphs, subgraph_index)
            if ops and self._apply_delegates_for(ops):
                ops = unserved_custom_ops(self._subgraphs, subgraph_index)
            if ops:
                nodes = running_nodes(self._subgraphs, subgraph_index)
                raise unresolved(nodes, self._subgraphs, self._session.resolver, self._manager.advice, self._model.name)
            if self._adopt_plan():
                return
            try:
                self._allocate_runner(subgraph_index)
            except UnservedNodeError as error:
                if not self._apply_delegates_for([unserved_op(error)]):
                    raise
                self._allocate_runner(subgraph_index)

    def _adopt_stored(self, plans: StoredPlans) -> bool:
        """Take over the plan from disk, if there is one."""
        executor = self._executors[0]
        self._session.enter(executor.subgraph)
        try:
            return plans.adopt(executor.subgraph, weakly(executor.rebind, constants=True))
        finally:
            self._session.leave()

    @property
    def _plan_key(self) -> tuple[Any, ...]:
        """The settings that a bound plan depends on."""
        session = self._session
        return session.resolver, session.num_threads, session.kept, session.limits

    def _adopt_plan(self) -> bool:
        """Take over the bound plan of a dropped interpreter, if this one is as new as the file and there is one."""
        if not self._shares_plans or len(self._subgraphs) != 1 or self._has_delegates or self._subgraphs[0].generation:
            return False
        (subgraph,), session = self._subgraphs, self._session
        plan = take_plan(self._plan_key, self._model, subgraph)
        if plan is None:
            return False
        from oplet.runtime.execution.folding import attach_folded

        session.enter(subgraph)
        try:
            subgraph.generation += 1
            plan.adopt(subgraph, session.memory)
            session.resources = plan.resources
            attach_folded(self._executors[0].context)
        finally:
            session.leave()
        subgraph.ready = True
        return True

    def _leave_plan(self, *, closed: bool = False) -> bool:
        """Leave the bound plan to the next interpreter of the model, if it may have it; this one is being dropped or closed."""
        if not self._shares_plans or len(self._subgraphs) != 1 or self._closed or self._has_delegates:
            return False
        (subgraph,), session = self._subgraphs, self._session
        if self._views.any_alive() or session.num_threads > 1 or session.is_running:
            return False
        if subgraph.stored is not None:
            return not closed and subgraph.ready and subgraph.stored.leave()
        if not remember_plan(self._plan_key, self._model, subgraph, session.memory, session.resources, closed=closed):
            return False
        self._closed = True
        if closed:
            self._part_from(subgraph)
        return True

    def _loaded_anew(self) -> Subgraph:
        """The model's only subgraph, as the file has it."""
        [table] = self._model.lazy_root.subgraphs or []
        return load_subgraph(self._model, 0, table, MemoryAccount(self._session.limits, self._model))

    def _part_from(self, left: Subgraph) -> None:
        """Have a subgraph of its own, without memory, in place of one that was left: a closed interpreter still describes its model."""
        session, own = self._session, self._loaded_anew()
        for tensor, its in zip(own.tensors, left.tensors):
            tensor.take_over(its)
            if tensor.allocation is not Allocation.CONSTANT:
                tensor.set_memory(None)
        for node, its_node in zip(own.nodes, left.nodes):
            node.registration = its_node.registration
        session.drop_references()
        self._subgraphs, self._executors = [own], [Executor(session, own)]
        session.subgraphs, session.runners = self._subgraphs, list(self._executors)

    @property
    def _has_delegates(self) -> bool:
        """Whether delegates were ever applied."""
        raise NotImplementedError

    def _allocate_runner(self, subgraph_index: int) -> None:
        with KernelNumpySettings():
            self._session.runners[subgraph_index].allocate()

    def _apply_delegates_for(self, ops: Iterable[str]) -> bool:
        """Apply the delegates that exist for custom ops which no kernel serves; returns False if there are none but those applied already."""
        raise NotImplementedError

    def _invoke(self, subgraph_index: int) -> None:
        self._model.check_files()
        # No call of numpy would notice the settings.
        if not self._backends and 0 <= subgraph_index < len(self._executors) and self._executors[subgraph_index].invoke_joined():
            return
        subgraph = self._subgraph(subgraph_index)
        self._ensure_idle()
        with KernelNumpySettings():
            self._session.runners[subgraph_index].invoke()
            if self._stored_plans is not None:
                self._store_plan(self._stored_plans)
            if subgraph.delegation_reports and not self.allow_buffer_handle_output:
                for index in subgraph.read:
                    ensure_readable(self._executors[subgraph_index].context, subgraph.tensors[index])

    def warm_up(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Wait until every node that is prepared has its best kernel.

        Packages of compiled kernels may run a node by another kernel while theirs is compiled in the background, which takes place
        without this method too. Nodes whose shapes are known only while invoking are left out.

        Args:
            progress: is called with the number of nodes that have theirs, and that of all nodes that are waited for; not at all where
                none is.

        Examples:
            >>> interpreter.warm_up()  # doctest: +SKIP
        """
        from oplet.ops.serving.improving import can_improve

        self._ensure_idle()
        total = sum(
            can_improve(thunk) for subgraph in self._subgraphs for segment in subgraph.segments for thunk in segment.thunks
        )
        done = 0

        def told() -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(done, total)

        if total:
            if progress is not None:
                progress(0, total)
            with KernelNumpySettings():
                for executor in self._executors:
                    executor.improve(told)

    def _keep_plan(self) -> None:
        """Run the model once, on whatever the inputs are, and store its plan on disk, where it has one, as when it is opened again."""
        if self._stored_plans is not None and self._subgraphs[0].ready:
            with suppress(InvokeError), KernelNumpySettings():  # not all models run on any inputs
                self._executors[0].invoke()
                self._store_plan(self._stored_plans, now=True)

    def _store_plan(self, plans: StoredPlans, *, now: bool = False) -> None:
        plans.store(self._subgraphs, self._session.resources, lambda: self._loaded_anew().tensors, now=now)

    def _resize(self, tensor_index: int, shape: tuple[int, ...], subgraph_index: int) -> None:
        self._ensure_idle()
        self._subgraph(subgraph_index)
        try:
            self._session.runners[subgraph_index].resize_input(tensor_index, shape)
        except EnsureError as error:
            raise PrepareError(str(error)) from error

    def _set(self, tensor_index: int, value: Any, subgraph_index: int) -> None:
        self._session.ensure_unlocked()
        tensor = self._tensor(tensor_index, subgraph_index)
        array = as_tensor_value(tensor, value)
        if not tensor.has_data:
            raise TensorError("Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first")
        if tensor.is_constant:
            raise TensorError(f"Cannot set tensor: {tensor} is a constant.")
        tensor.data[...] = array
        tensor.data_is_stale = False

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> NDArray[Any]:
        """A copy of a tensor's value; a numpy scalar for a number without dimensions, as in LiteRT.

        Args:
            tensor_index: the 'index' of its details.
            subgraph_index: the subgraph that the tensor is in.

        Raises:
            TensorError: there is no such tensor, it has no memory yet, or it is an intermediate one whose memory
                another tensor uses since (LiteRT returns that tensor's bytes); a ValueError.
            LimitError: there is no memory for the copy.
            ModelError: the model's file was cut short.
        """
        self._session.ensure_unlocked()
        tensor = self._tensor(tensor_index, subgraph_index)
        subgraph = self._subgraphs[subgraph_index]
        if not subgraph.is_absorbed(tensor):
            tensor = self._readable(tensor_index, subgraph_index)
        if subgraph.is_absorbed(tensor) or not subgraph.still_holds(tensor):
            raise TensorError(
                f"Tensor data is null. The memory of {tensor} was given to another tensor after the last node that reads it, or it has none. "
                "Construct the interpreter with experimental_preserve_all_tensors=True to read intermediate tensors."
            )
        try:
            value = np.array(tensor.data)
        except MemoryError as error:
            raise LimitError(f"There is not enough memory for a copy of {tensor} of {self._model.name}: {error}.") from error
        return value if value.ndim or value.dtype.hasobject else value[()]

    def _readable(self, index: int, subgraph_index: int) -> Tensor:
        tensor = self._tensor(index, subgraph_index)
        if not tensor.has_data:
            raise TensorError(f"Tensor data is null. Run allocate_tensors() first; {tensor} has no memory yet.")
        self._model.check_files()
        if tensor.data_is_stale:
            ensure_readable(self._executors[subgraph_index].context, tensor)
        return tensor

    def reset_all_variables(self) -> None:
        """Set all variable tensors to zero."""
        self._session.ensure_unlocked()
        for executor in self._executors:
            executor.reset_variables()

    def release_non_persistent_memory(self) -> None:
        """Release the memory of all tensors but constants and variables; `allocate_tensors` allocates it again.

        Raises:
            ViewError: a numpy view of a tensor is still alive (a RuntimeError).
        """
        self._views.ensure_none()
        self._ensure_idle()
        for executor in self._executors:
            executor.release()

    def _ensure_open(self) -> None:
        if self._closed:
            raise StateError(f"The interpreter of {self._model.name} was closed and cannot run any more; make another one.")

    def _ensure_idle(self) -> None:
        self._session.ensure_unlocked()
        for backend in self._backends.values():
            backend.ensure_idle()

    def close(self) -> None:
        """Free the kernels' state and the tensors' memory, and end the threads; the interpreter cannot run afterwards.

        What kernels have made of a small model's weights may stay for a minute, for the next interpreter of the same model.
        Garbage collection closes an interpreter too.

        Raises:
            StateError: another thread is using the interpreter (a RuntimeError).
        """
        if self._executors:
            self._session.ensure_unlocked()
            if self._leave_plan(closed=True):
                return
        self._closed = True
        try:
            while self._backends:
                self._backends.popitem()[1].close()
        finally:
            if self._executors:
                self._session.end_workers()
            failure: OpletError | None = None
            for executor in self._executors:
                try:
                    executor.close()
                except OpletError as error:  # the other executors still have to be closed
                    failure = failure or error
            if failure is not None:
                raise failure

    def __del__(self) -> None:
        try:
            try:
                if not self._leave_plan():
                    self.close()
            finally:
                if self._executors:
                    self._session.drop_references()
        except failures() as error:  # Python ignores what a destructor raises
            warnings.warn(text_of(error), ResourceWarning, stacklevel=1)
