"""Buffer handles: tensors whose values a delegate keeps in buffers of its own, and which are copied when others read them.

Rules: tflite/core/subgraph.cc of google-ai-edge/LiteRT (SetBufferHandle, EnsureTensorDataIsReadable).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from oplet.errors import DelegateError, OpletError, failures, text_of
from oplet.ops.context import Context, Node
from oplet.ops.node import Thunk
from oplet.ops.tensor import Tensor

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate

__all__ = ["ensure_readable", "free_handle", "free_handles", "set_buffer_handle", "with_readable_inputs"]


def ensure_readable(context: Context, tensor: Tensor) -> None:
    """Copy a tensor's value from its delegate's buffer to `tensor.data`, if the buffer's is newer (`data_is_stale`).

    Raises:
        DelegateError: the tensor is stale and has no buffer, or the delegate cannot copy it.
    """
    if not tensor.data_is_stale:
        return
    if tensor.delegate is None or tensor.buffer_handle is None:
        raise DelegateError(f"The data of {tensor} is stale, and no delegate has a buffer with its value.")
    try:
        tensor.delegate.copy_from_buffer_handle(context, tensor.buffer_handle, tensor)
    except OpletError:
        raise
    except failures() as error:
        raise DelegateError(
            f"{tensor.delegate.name} cannot copy the data of {tensor} from its buffer: {text_of(error)}."
        ) from error
    tensor.data_is_stale = False


def with_readable_inputs(context: Context, node: Node, thunk: Thunk) -> Thunk:
    """Return a function that first copies inputs that are newer in other delegates' buffers, then runs the node; `thunk` itself without
    such inputs.
    """
    foreign: list[Tensor] = []
    for tensor in node.inputs:
        if tensor is not None and tensor.delegate is not None and tensor.delegate is not node.delegate:
            foreign.append(tensor)
    if not foreign:
        return thunk

    def run() -> None:
        for tensor in foreign:
            if tensor.data_is_stale:
                ensure_readable(context, tensor)
        thunk()

    return run


def set_buffer_handle(context: Context, tensor: Tensor, handle: Any, delegate: Delegate) -> None:
    """Bind a delegate's buffer to a tensor; the buffer that was bound before is freed.

    Args:
        context: the context of the tensor's subgraph.
        tensor: the tensor.
        handle: the delegate's handle of the buffer; None to bind no buffer.
        delegate: the delegate.

    Raises:
        DelegateError: the tensor belongs to another delegate.
    """
    if tensor.delegate is not None and tensor.delegate is not delegate:
        raise DelegateError(f"{delegate.name} cannot take {tensor}: it belongs to {tensor.delegate.name}.")
    tensor.delegate = delegate
    free_handle(context, tensor)
    tensor.buffer_handle = handle


def free_handle(context: Context, tensor: Tensor) -> None:
    """Have the tensor's delegate free the buffer that is bound to it, if there is one.

    Raises:
        DelegateError: the delegate failed; the buffer is not bound any more.
    """
    if tensor.delegate is not None and tensor.buffer_handle is not None:
        handle, tensor.buffer_handle = tensor.buffer_handle, None
        tensor.data_is_stale = False
        try:
            tensor.delegate.free_buffer_handle(context, handle)
        except OpletError:
            raise
        except failures() as error:
            raise DelegateError(
                f"{tensor.delegate.name} cannot free its buffer {handle!r} of {tensor}: {text_of(error)}."
            ) from error


def free_handles(context: Context, tensors: Iterable[Tensor]) -> None:
    """Have delegates free the buffers of these tensors, which then belong to none; the first error is raised at the end."""
    failure: OpletError | None = None
    for tensor in tensors:
        try:
            free_handle(context, tensor)
        except OpletError as error:
            failure = failure or error
        tensor.delegate = None
        tensor.data_is_stale = False
    if failure is not None:
        raise failure
