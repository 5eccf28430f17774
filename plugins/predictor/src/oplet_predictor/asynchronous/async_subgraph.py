"""A subgraph that one delegate's kernel runs asynchronously, with the checks that are made before each call of the kernel.

Rules and messages: tflite/core/async/async_subgraph.cc of google-ai-edge/LiteRT.
"""

from __future__ import annotations

import copy
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from oplet import BuiltinOperator, Context, Node
from oplet.errors import DelegateError, InvokeError, OpletError, PrepareError, StateError, TensorError, failures
from oplet.toolkit import Subgraph, node_error
from oplet_predictor.asynchronous.attributes import Attributes, BufferAttribute, Reconciliation
from oplet_predictor.asynchronous.kernel import AsyncKernel, BackendBuffer
from oplet_predictor.asynchronous.task import ExecutionTask, IoType, TaskRunner

__all__ = ["AsyncSubgraph"]

Result = TypeVar("Result")


class AsyncSubgraph:
    """The asynchronous kernel of a fully delegated subgraph, its registered buffers, and its tasks.

    Args:
        subgraph: the subgraph.
        context: the context of its kernels.
        model: the model's name, for errors.

    Attributes:
        subgraph: the subgraph.
        node: its only node.
        kernel: that node's asynchronous kernel.

    Raises:
        DelegateError: the subgraph is not run by one delegate's kernel, or that one cannot run asynchronously.
    """

    def __init__(self, subgraph: Subgraph, context: Context, model: str) -> None:
        self.subgraph = subgraph
        self._context = context
        self._where = f"subgraph {subgraph.index} of {model}"
        self.node = _only_delegate(subgraph)
        self.kernel = self._call(DelegateError, "failed to bring an async_kernel", _async_kernel, context, self.node)
        self._types = {io: list(self.kernel.supported_buffer_types(io)) for io in IoType}
        self._synchronizations = {io: list(self.kernel.supported_synchronizations(io)) for io in IoType}
        self._handles = itertools.count()
        self._lock = threading.RLock()
        self._buffers: dict[int, BackendBuffer] = {}
        self._pools: dict[int, int] = {}  # by the handle of a slice
        self._tasks: weakref.WeakSet[ExecutionTask] = weakref.WeakSet()
        self._prepared: int | None = None
        self._closed = False

    @property
    def is_current(self) -> bool:
        """Whether the delegate's single node still runs the whole subgraph; False after another delegate has claimed nodes."""
        return self.subgraph.execution_plan == [self.node.index] and self.subgraph.nodes[self.node.index] is self.node

    # Buffers -------------------------------------------------------------------------------------------------

    def register_buffer(self, io: IoType, buffer: BackendBuffer, attributes: Attributes) -> int:
        self._ensure_open()
        if not isinstance(buffer, BackendBuffer):
            raise TensorError(f"A {type(buffer).__name__} is given as a buffer; wrap it: BackendBuffer(...).")
        kind = attributes.get(BufferAttribute.RESOURCE_TYPE_NAME)
        if kind not in self._types[io]:
            raise TensorError(
                f"A buffer needs the attribute RESOURCE_TYPE_NAME; it is {kind!r}, {self.node.op_name} takes "
                f"{' or '.join(map(repr, self._types[io])) or 'none'} for an {io.name.lower()}."
            )
        handle = next(self._handles)
        register = self.kernel.register_buffer
        self._call(TensorError, "failed to register a buffer", register, self._context, io, buffer, attributes, handle)
        with self._lock:
            self._buffers[handle] = buffer
        return handle

    def register_buffer_slice(self, pool: int, attributes: Attributes) -> int:
        self._ensure_open()
        self.check_handle(pool)
        if pool in self._pools:
            raise TensorError(f"The buffer {pool} is a slice of buffer {self._pools[pool]} itself; slices are not nested.")
        handle = next(self._handles)
        register = self.kernel.register_buffer_slice
        self._call(TensorError, "failed to register a slice", register, self._context, pool, attributes, handle)
        with self._lock:
            self._buffers[handle] = self._buffers[pool]
            self._pools[handle] = pool
        return handle

    def unregister_buffer(self, handle: int) -> None:
        self._ensure_open()
        with self._lock:
            self.check_handle(handle)
            slices = sorted(part for part, pool in self._pools.items() if pool == handle)
            if slices:
                raise StateError(f"The buffer {handle} still has the slices {slices}; unregister those first.")
            if any(handle in task.buffers.values() for task in self._in_flight()):
                raise StateError(f"The buffer {handle} is used by a task in flight; wait for that first.")
            unregister = self.kernel.unregister_buffer
            self._call(TensorError, "failed to unregister a buffer", unregister, self._context, handle)
            del self._buffers[handle]
            self._pools.pop(handle, None)

    def set_buffer_attributes(self, buffer: BackendBuffer, attributes: Attributes) -> None:
        self._check_buffer(buffer)
        self._call(TensorError, "failed to set a buffer's attributes", self.kernel.set_buffer_attributes, buffer, attributes)

    def get_buffer_attributes(self, buffer: BackendBuffer) -> dict[Any, Any]:
        self._check_buffer(buffer)
        return dict(self._call(TensorError, "failed to get a buffer's attributes", self.kernel.get_buffer_attributes, buffer))

    def check_handle(self, handle: int) -> None:
        if handle not in self._buffers:
            raise TensorError(f"No buffer is registered under the handle {handle!r}; register_buffer returns handles.")

    def _check_buffer(self, buffer: BackendBuffer) -> None:
        self._ensure_open()
        if not any(known is buffer for known in self._buffers.values()):
            raise TensorError("The buffer is not registered; call register_buffer first.")

    # Attributes ----------------------------------------------------------------------------------------------

    def supported_buffer_types(self, io: IoType) -> list[str]:
        return list(self._types[io])

    def supported_synchronizations(self, io: IoType) -> list[str]:
        return list(self._synchronizations[io])

    def reconcile_restrictions(self, index: int, attributes: Attributes) -> Reconciliation:
        self._ensure_open()
        reconcile = self.kernel.reconcile_restrictions
        return self._call(
            PrepareError, "failed to reconcile restrictions", reconcile, self._context, self.node, index, attributes
        )

    def set_attributes(self, index: int, attributes: Attributes) -> None:
        self.ensure_idle()
        set_attributes = self.kernel.set_attributes
        self._prepared = None
        self._call(PrepareError, "failed to set attributes", set_attributes, self._context, self.node, index, attributes)

    def prepare(self) -> None:
        """Prepare the kernel; the subgraph is allocated already."""
        self.ensure_idle()
        if not self.is_current:
            raise DelegateError(f"Another delegate has changed {self.subgraph} since; get another runner.")
        self._prepared = None
        self._call(PrepareError, "failed to prepare for asynchronous execution", self.kernel.prepare, self._context, self.node)
        self._prepared = self.subgraph.generation

    # Tasks ---------------------------------------------------------------------------------------------------

    def create_task(self, runner: TaskRunner) -> ExecutionTask:
        self._ensure_prepared()
        task = ExecutionTask(runner)
        with self._lock:
            self._tasks.add(task)
        return task

    def invoke_async(self, task: ExecutionTask) -> None:
        self._ensure_own(task)
        self._ensure_prepared()
        task._schedule(lambda: self._attempt("failed to start asynchronously", self._start, task))

    def _start(self, context: Context, task: ExecutionTask) -> None:
        for handle in task.buffers.values():  # the task is in flight now, so that none of them can be unregistered
            self.check_handle(handle)
        self.kernel.eval(context, self.node, task)

    def wait(self, task: ExecutionTask) -> None:
        self._ensure_own(task)
        task._ensure_unfinished()
        error = self._settle(task)
        if error is not None:  # a copy for each thread that waits, as raising an exception changes it
            raise copy.copy(error) from error.__cause__

    def finish(self, task: ExecutionTask) -> None:
        self._ensure_own(task)
        task._mark_finished()
        self._settle(task)
        error = self._attempt("failed to finish", self.kernel.finish, task)
        if error is not None:
            raise type(error)(f"Failed to finish task. {error}") from error.__cause__

    def close(self) -> None:
        """Wait for every task and release it; no task can be started afterwards. The first error is raised after all are released."""
        self._closed = True
        failure: OpletError | None = None
        with self._lock:
            tasks = [task for task in self._tasks if not task.finished]
        for task in tasks:
            try:
                self.finish(task)
            except OpletError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _settle(self, task: ExecutionTask) -> OpletError | None:
        return task._settle(lambda: self._attempt("failed to invoke", self.kernel.wait, task))

    # Checks --------------------------------------------------------------------------------------------------

    def ensure_idle(self) -> None:
        """Check that no task is in flight, since changing or running the subgraph uses the same memory.

        Raises:
            StateError: a task is in flight.
        """
        self._ensure_open()
        count = len(self._in_flight())
        if count:
            raise StateError(
                f"{count} asynchronous task(s) are in flight in {self.subgraph}; wait for them or finish them first."
            )

    def _in_flight(self) -> list[ExecutionTask]:
        with self._lock:
            return [task for task in self._tasks if task.scheduled]

    def _ensure_open(self) -> None:
        if self._closed:
            raise StateError("The interpreter was closed; nothing can run asynchronously any more.")

    def _ensure_prepared(self) -> None:
        self._ensure_open()
        if self._prepared is None or self._prepared != self.subgraph.generation or not self.is_current:
            raise StateError("The backend is not prepared for the present shapes and attributes; call prepare_backends first.")

    def _ensure_own(self, task: ExecutionTask) -> None:
        if not isinstance(task, ExecutionTask) or task not in self._tasks:
            raise StateError(f"{task!r} is no task of this runner; create_task makes them.")

    # Calling the kernel --------------------------------------------------------------------------------------

    def _call(self, cls: type[OpletError], what: str, method: Callable[..., Result], *arguments: Any) -> Result:
        try:
            return method(*arguments)
        except failures() as error:  # a third-party kernel may raise anything
            raise self._node_error(cls, what, error) from error

    def _attempt(self, what: str, method: Callable[..., None], *arguments: Any) -> OpletError | None:
        """Call a method of the asynchronous kernel; return the error if it fails, in place of raising it as `_call` does."""
        try:
            method(self._context, *arguments)
        except failures() as error:
            told = self._node_error(InvokeError, what, error)
            told.__cause__ = error
            return told
        return None

    def _node_error(self, cls: type[OpletError], what: str, error: BaseException) -> OpletError:
        return node_error(cls, self.node, error, what, self._where)


def _only_delegate(subgraph: Subgraph) -> Node:
    plan: Sequence[int] = subgraph.execution_plan
    names = [subgraph.nodes[index].op_name for index in plan]
    if len(plan) != 1 or subgraph.nodes[plan[0]].op is not BuiltinOperator.DELEGATE:
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise DelegateError(f"Model is not fully delegated by 1 backend. {subgraph} runs {len(plan)} node(s): {shown or 'none'}.")
    return subgraph.nodes[plan[0]]


def _async_kernel(context: Context, node: Node) -> AsyncKernel:
    offer = node.registration.async_kernel if node.registration is not None else None
    kernel = offer(context, node) if offer is not None else None
    if kernel is None:
        raise DelegateError(f"Backend does not support asynchronous execution. {node.op_name} brings no async_kernel.")
    if not isinstance(kernel, AsyncKernel):
        raise DelegateError(f"The async_kernel of {node.op_name} is a {type(kernel).__name__}, no AsyncKernel.")
    return kernel
