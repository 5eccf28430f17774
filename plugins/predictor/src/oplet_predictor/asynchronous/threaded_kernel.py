"""Adapter that runs any kernel asynchronously: in a thread, on numpy arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from oplet import Context, Node, Tensor, ensure
from oplet.toolkit import EnsureError, Thunk
from oplet_predictor.asynchronous.attributes import (
    NO_SYNC_OBJECT,
    Attributes,
    BufferAttribute,
    Reconciliation,
    SynchronizationAttribute,
    reconcile_attributes,
    uncovered_attributes,
)
from oplet_predictor.asynchronous.kernel import AsyncKernel, BackendBuffer
from oplet_predictor.asynchronous.task import ExecutionTask, IoType

if TYPE_CHECKING:
    from concurrent.futures import Future

    from numpy.typing import NDArray

__all__ = ["NUMPY_BUFFER", "THREADING_EVENT", "ThreadedAsyncKernel"]

#: The type of buffer that it supports: a numpy array.
NUMPY_BUFFER: Final = "numpy.ndarray"
#: The type of synchronization object that it supports: an event that is set when the data is ready.
THREADING_EVENT: Final = "threading.Event"


class _Registered(NamedTuple):
    buffer: BackendBuffer
    array: NDArray[Any]
    attributes: Attributes


class ThreadedAsyncKernel(AsyncKernel):
    """Asynchronous kernel that runs a function (from `bind`) in a thread of its own; executions run one after another, in the
    order of their start.

    A buffer is a numpy array of the tensor's dtype and shape, or one of bytes (uint8, one dimension) with at least the tensor's number
    of bytes. The thunk works on the tensors: inputs are copied into them and outputs out of them, so that the tensors' values change
    with every execution.

    Args:
        bind: returns the function (thunk) that runs the node: a `DelegateKernel`'s own `bind`.

    Examples:
        >>> from oplet import DelegateKernel
        >>> class MyKernel(DelegateKernel):
        ...     def async_kernel(self, context, node):
        ...         return ThreadedAsyncKernel(self.bind)
    """

    def __init__(self, bind: Callable[[Context, Node], Thunk]) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._bind = bind
        self._thunk: Thunk | None = None
        self._lock = threading.Lock()
        self._registered: dict[int, _Registered] = {}
        self._synchronizations: dict[int, str] = {}
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="oplet-async")

    # Buffers -------------------------------------------------------------------------------------------------

    def register_buffer(self, context: Context, io: IoType, buffer: BackendBuffer, attributes: Attributes, handle: int) -> None:
        array = buffer.resource
        ensure(isinstance(array, np.ndarray), f"the buffer is a {type(array).__name__}; numpy arrays are possible.")
        ensure(io is IoType.INPUT or array.flags.writeable, "the buffer for an output is read-only.")
        self._keep(handle, buffer, attributes, _part(array, attributes))

    def register_buffer_slice(self, context: Context, pool: int, attributes: Attributes, handle: int) -> None:
        whole = self._registered[pool]
        ensure(BufferAttribute.SIZE in attributes, "a slice needs its SIZE among the attributes.")
        self._keep(handle, BackendBuffer(whole.array), attributes, _part(whole.array, attributes))

    def _keep(self, handle: int, buffer: BackendBuffer, attributes: Attributes, array: NDArray[Any]) -> None:
        with self._lock:
            self._registered[handle] = _Registered(buffer, array, dict(attributes))

    def unregister_buffer(self, context: Context, handle: int) -> None:
        with self._lock:
            del self._registered[handle]

    def set_buffer_attributes(self, buffer: BackendBuffer, attributes: Attributes) -> None:
        array = _part(buffer.resource, attributes)
        with self._lock:
            for handle, known in self._registered.items():
                if known.buffer is buffer:
                    self._registered[handle] = _Registered(buffer, array, dict(attributes))

    def get_buffer_attributes(self, buffer: BackendBuffer) -> Attributes:
        with self._lock:
            return next(known.attributes for known in self._registered.values() if known.buffer is buffer)

    # Negotiation of attributes -------------------------------------------------------------------------------

    def supported_buffer_types(self, io: IoType) -> Sequence[str]:
        return (NUMPY_BUFFER,)

    def supported_synchronizations(self, io: IoType) -> Sequence[str]:
        return (NO_SYNC_OBJECT, THREADING_EVENT)

    def reconcile_restrictions(self, context: Context, node: Node, tensor_index: int, attributes: Attributes) -> Reconciliation:
        return reconcile_attributes(attributes, self._needs(context.tensors[tensor_index], attributes))

    def set_attributes(self, context: Context, node: Node, tensor_index: int, attributes: Attributes) -> None:
        tensor = context.tensors[tensor_index]
        lacking = uncovered_attributes(attributes, self._needs(tensor, attributes))
        told = ", ".join(f"{getattr(key, 'name', key)} = {value}" for key, value in lacking.items())
        ensure(not lacking, f"the attributes for {tensor} do not grant what the kernel needs: {told}.")
        if SynchronizationAttribute.OBJECT_TYPE_NAME in attributes:
            self._synchronizations[tensor_index] = attributes[SynchronizationAttribute.OBJECT_TYPE_NAME]

    def _needs(self, tensor: Tensor, attributes: Attributes) -> Attributes:
        """Return the attributes that a tensor's buffer (or synchronization object, if `attributes` are of one) needs."""
        kind = attributes.get(SynchronizationAttribute.OBJECT_TYPE_NAME)
        if kind is not None:
            known = kind in self.supported_synchronizations(IoType.INPUT)
            needs: Attributes = {SynchronizationAttribute.OBJECT_TYPE_NAME: kind if known else NO_SYNC_OBJECT}
            if not any(isinstance(key, BufferAttribute) for key in attributes):
                return needs
        else:
            needs = {}
        return {**needs, BufferAttribute.RESOURCE_TYPE_NAME: NUMPY_BUFFER, BufferAttribute.SIZE: tensor.nbytes}

    # Execution -----------------------------------------------------------------------------------------------

    def prepare(self, context: Context, node: Node) -> None:
        for tensor in (*_inputs(node), *node.outputs):
            ensure(not tensor.is_dynamic, f"the size of {tensor} is known only while running, so that no buffer can fit it.")
        self._thunk = self._bind(context, node)

    def eval(self, context: Context, node: Node, task: ExecutionTask) -> None:
        thunk = self._thunk
        if thunk is None:
            raise EnsureError("the kernel was not prepared.")
        inputs = [(tensor.data, self._buffer(task, tensor)) for tensor in _inputs(node)]
        outputs = [(self._buffer(task, tensor), tensor.data) for tensor in node.outputs]
        for tensor, (array, _) in zip(node.outputs, outputs):
            ensure(array.flags.writeable, f"the buffer for {tensor} is read-only.")
        awaited = [event for tensor in _inputs(node) if (event := self._awaited(task, tensor)) is not None]
        promised = [self._promised(task, tensor) for tensor in node.outputs]
        task.data = self._worker.submit(_run, awaited, inputs, thunk, outputs, promised)

    def wait(self, context: Context, task: ExecutionTask) -> None:
        future: Future[None] = task.data
        future.result()

    def finish(self, context: Context, task: ExecutionTask) -> None:
        task.data = None

    def _buffer(self, task: ExecutionTask, tensor: Tensor) -> NDArray[Any]:
        """Return the task's buffer for a tensor, as an array of the tensor's dtype and shape."""
        handle = task.buffers.get(tensor.index)
        if handle is None:
            raise EnsureError(f"the task has no buffer for {tensor}; give it one with set_buffer.")
        array = self._registered[handle].array
        if array.dtype == tensor.dtype and array.shape == tensor.shape:
            return array
        flat = array.dtype == np.uint8 and array.ndim == 1 and array.flags.c_contiguous
        fits = flat and array.nbytes >= tensor.nbytes and not tensor.dtype.hasobject
        ensure(
            fits,
            f"the buffer for {tensor} is an array of {array.dtype} {list(array.shape)}; it must be of the tensor's dtype and "
            f"shape, or at least {tensor.nbytes} bytes (uint8, one dimension).",
        )
        return array[: tensor.nbytes].view(tensor.dtype).reshape(tensor.shape)

    def _synchronization(self, task: ExecutionTask, tensor: Tensor) -> Any:
        """Return the task's synchronization object for a tensor that uses events; None for others."""
        agreed = self._synchronizations.get(tensor.index) == THREADING_EVENT
        return task.synchronization(tensor.index) if agreed else None

    def _awaited(self, task: ExecutionTask, tensor: Tensor) -> threading.Event | None:
        carrier = self._synchronization(task, tensor)
        event = None if carrier is None else carrier.resource
        ensure(
            event is None or isinstance(event, threading.Event),
            f"{tensor} is to wait for a {type(event).__name__}; a {THREADING_EVENT} was agreed on.",
        )
        return event

    def _promised(self, task: ExecutionTask, tensor: Tensor) -> threading.Event:
        event = threading.Event()
        carrier = self._synchronization(task, tensor)
        if carrier is not None:
            carrier.resource = event
        return event


def _inputs(node: Node) -> list[Tensor]:
    """Return the node's inputs whose values the application provides: all but constants and variables."""
    return [tensor for tensor in node.inputs if tensor is not None and not tensor.is_constant and not tensor.is_variable]


def _run(
    awaited: Sequence[threading.Event],
    inputs: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    thunk: Thunk,
    outputs: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    promised: Sequence[threading.Event],
) -> None:
    try:
        for event in awaited:
            event.wait()
        with np.errstate(all="ignore"):
            for tensor, buffer in inputs:
                np.copyto(tensor, buffer)
            thunk()
            for buffer, tensor in outputs:
                np.copyto(buffer, tensor)
    finally:  # also after a failure: threads may wait for these events
        for event in promised:
            event.set()


def _part(array: NDArray[Any], attributes: Attributes) -> NDArray[Any]:
    """Return the part of a buffer that the attributes describe: the array itself if they describe all of it, else its bytes."""
    offset = attributes.get(BufferAttribute.OFFSET) or 0
    size = attributes.get(BufferAttribute.SIZE)
    size = array.nbytes - offset if size is None else size
    ensure(
        offset >= 0 and size >= 0 and offset + size <= array.nbytes,
        f"bytes {offset} to {offset + size} are asked for; the buffer has {array.nbytes}.",
    )
    alignment = attributes.get(BufferAttribute.ALIGNMENT) or 1
    address = array.__array_interface__["data"][0] + offset
    ensure(
        address % alignment == 0, f"the buffer starts at address {address}, which is no multiple of the ALIGNMENT {alignment}."
    )
    if offset == 0 and size == array.nbytes:
        return array
    ensure(array.flags.c_contiguous and not array.dtype.hasobject, "only a contiguous buffer of plain values has parts.")
    return array.reshape(-1).view(np.uint8)[offset : offset + size]
