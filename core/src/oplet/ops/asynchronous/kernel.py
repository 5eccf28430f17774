"""What a delegate's kernel offers so that it can run asynchronously, on buffers that the application registered.

Contract: tflite/core/async/c/async_kernel.h of google-ai-edge/LiteRT. Where its functions return an error, these raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oplet.ops.asynchronous.attributes import NO_SYNC_OBJECT, Attributes, Reconciliation
from oplet.ops.asynchronous.task import ExecutionTask, IoType
from oplet.ops.context import Context, Node

__all__ = ["AsyncKernel", "BackendBuffer"]


class BackendBuffer:
    """Carries a buffer, of whatever kind the kernel supports.

    Attributes:
        resource: the buffer itself; for `ThreadedAsyncKernel` a numpy array.
    """

    def __init__(self, resource: Any) -> None:
        self.resource = resource


class AsyncKernel:
    """Base of asynchronous kernels; a registration's `async_kernel(context, node)` returns one.

    The runtime checks what concerns every kernel before it calls: handles are known, slices are not nested, a task is
    started only when it is idle. Methods raise to refuse or to fail. They may be called from several threads.
    """

    # Buffers -------------------------------------------------------------------------------------------------

    def register_buffer(self, context: Context, io: IoType, buffer: BackendBuffer, attributes: Attributes, handle: int) -> None:
        """Know `buffer` as `handle` from now on.

        Args:
            io: whether it will be read or written.
            attributes: at least its `RESOURCE_TYPE_NAME`, one of `supported_buffer_types`; check what else is given.
        """
        raise NotImplementedError

    def register_buffer_slice(self, context: Context, pool: int, attributes: Attributes, handle: int) -> None:
        """Know a part of a registered buffer, which the attributes describe (OFFSET, SIZE), as `handle` from now on.

        Args:
            pool: the handle of a whole buffer.
        """
        raise NotImplementedError

    def unregister_buffer(self, context: Context, handle: int) -> None:
        """Forget a buffer or slice; the buffer itself is the application's."""
        raise NotImplementedError

    def set_buffer_attributes(self, buffer: BackendBuffer, attributes: Attributes) -> None:
        """Replace what is known about a registered buffer."""
        raise NotImplementedError

    def get_buffer_attributes(self, buffer: BackendBuffer) -> Attributes:
        """What is known about a registered buffer."""
        raise NotImplementedError

    # Agreeing with the application ---------------------------------------------------------------------------

    def supported_buffer_types(self, io: IoType) -> Sequence[str]:
        """Kinds of buffers that inputs are read from or outputs written to, the preferred one first."""
        raise NotImplementedError

    def supported_synchronizations(self, io: IoType) -> Sequence[str]:
        """Kinds of synchronization objects that inputs can wait for or that outputs can have."""
        return (NO_SYNC_OBJECT,)

    def reconcile_restrictions(self, context: Context, node: Node, tensor_index: int, attributes: Attributes) -> Reconciliation:
        """Merge what the application says about a tensor's buffers or synchronization with what the kernel needs.

        `reconcile_attributes` does the merging by LiteRT's rules. What the kernel does not know goes through.
        """
        return Reconciliation(dict(attributes))

    def set_attributes(self, context: Context, node: Node, tensor_index: int, attributes: Attributes) -> None:
        """Take the attributes for a tensor; refuse them if they do not grant what the kernel needs."""

    # Execution -----------------------------------------------------------------------------------------------

    def prepare(self, context: Context, node: Node) -> None:
        """Get ready, with the attributes that were set; the tensors have their shapes and memory."""

    def eval(self, context: Context, node: Node, task: ExecutionTask) -> None:
        """Start an execution and return without waiting for it.

        `task.buffers` has the handles by tensor index. For an output whose `task.synchronization` is given and wanted,
        put an object into its `resource`.
        """
        raise NotImplementedError

    def wait(self, context: Context, task: ExecutionTask) -> None:
        """Block until the execution has ended; raise if it failed. Called once for each, by the first who waits."""
        raise NotImplementedError

    def finish(self, context: Context, task: ExecutionTask) -> None:
        """Release what belongs to the task. Called once for each, after its last execution has ended."""
