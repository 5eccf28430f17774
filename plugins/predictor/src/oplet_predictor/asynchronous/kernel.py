"""Interface of asynchronous kernels, which work on buffers that the application registered.

Contract: tflite/core/async/c/async_kernel.h of google-ai-edge/LiteRT. Where its functions return an error, these raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oplet import Context, Node
from oplet_predictor.asynchronous.attributes import NO_SYNC_OBJECT, Attributes, Reconciliation
from oplet_predictor.asynchronous.task import ExecutionTask, IoType

__all__ = ["AsyncKernel", "BackendBuffer"]


class BackendBuffer:
    """Holder of a buffer, of any type that the kernel supports.

    Attributes:
        resource: the buffer itself; for `ThreadedAsyncKernel` a numpy array.
    """

    def __init__(self, resource: Any) -> None:
        self.resource = resource


class AsyncKernel:
    """Base of asynchronous kernels; a registration's `async_kernel(context, node)` returns one.

    The runtime has checked before each call that handles are known, slices are not nested, and a task is started only when it is idle.
    Methods raise to refuse or to fail. They may be called from several threads.
    """

    # Buffers -------------------------------------------------------------------------------------------------

    def register_buffer(self, context: Context, io: IoType, buffer: BackendBuffer, attributes: Attributes, handle: int) -> None:
        """Register a buffer under a handle.

        Args:
            io: whether it will be read or written.
            buffer: the buffer.
            attributes: at least its `RESOURCE_TYPE_NAME`, one of `supported_buffer_types`; the kernel checks all others.
            handle: the number by which tasks refer to it.
        """
        raise NotImplementedError

    def register_buffer_slice(self, context: Context, pool: int, attributes: Attributes, handle: int) -> None:
        """Register a part of a registered buffer under a handle.

        Args:
            pool: the handle of a whole buffer.
            attributes: describe the part (OFFSET, SIZE).
            handle: the number by which tasks refer to the part.
        """
        raise NotImplementedError

    def unregister_buffer(self, context: Context, handle: int) -> None:
        """Unregister a buffer or slice; the buffer itself belongs to the application."""
        raise NotImplementedError

    def set_buffer_attributes(self, buffer: BackendBuffer, attributes: Attributes) -> None:
        """Replace the attributes of a registered buffer."""
        raise NotImplementedError

    def get_buffer_attributes(self, buffer: BackendBuffer) -> Attributes:
        """Return the attributes of a registered buffer."""
        raise NotImplementedError

    # Negotiation of attributes -------------------------------------------------------------------------------

    def supported_buffer_types(self, io: IoType) -> Sequence[str]:
        """Return the types of buffers that are supported for inputs or outputs, the preferred one first."""
        raise NotImplementedError

    def supported_synchronizations(self, io: IoType) -> Sequence[str]:
        """Return the types of synchronization objects that are supported for inputs or outputs."""
        return (NO_SYNC_OBJECT,)

    def reconcile_restrictions(self, context: Context, node: Node, tensor_index: int, attributes: Attributes) -> Reconciliation:
        """Merge the application's attributes of a tensor's buffer or synchronization object with those that the kernel needs.

        `reconcile_attributes` merges by LiteRT's rules. Attributes that the kernel does not know are kept.
        """
        return Reconciliation(dict(attributes))

    def set_attributes(self, context: Context, node: Node, tensor_index: int, attributes: Attributes) -> None:
        """Set the attributes for a tensor; raise if they do not satisfy what the kernel needs."""

    # Execution -----------------------------------------------------------------------------------------------

    def prepare(self, context: Context, node: Node) -> None:
        """Prepare for execution with the attributes that were set; the tensors have their shapes and memory."""

    def eval(self, context: Context, node: Node, task: ExecutionTask) -> None:
        """Start an execution and return without waiting for it.

        `task.buffers` has the handles by tensor index. For an output with a `task.synchronization`, of a type that was agreed on, set
        its `resource`.
        """
        raise NotImplementedError

    def wait(self, context: Context, task: ExecutionTask) -> None:
        """Block until the execution has ended; raise if it failed. Called once for each execution."""
        raise NotImplementedError

    def finish(self, context: Context, task: ExecutionTask) -> None:
        """Release the resources of the task. Called once for each task, after its last execution has ended."""
