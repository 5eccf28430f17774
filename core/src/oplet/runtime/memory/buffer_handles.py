"""Values that a delegate keeps in buffers of its own: copied back when somebody else reads them.

Rules: tflite/core/subgraph.cc of google-ai-edge/LiteRT (SetBufferHandle, EnsureTensorDataIsReadable).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from oplet.errors import DelegateError, OpletError, failures, text_of
from oplet.ops.context import Context, Node
from oplet.ops.serving.registration import Thunk
from oplet.ops.tensor import Tensor

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate

__all__ = ["ensure_readable", "free_handle", "free_handles", "set_buffer_handle", "with_readable_inputs"]


def ensure_readable(context: Context, tensor: Tensor) -> None:
    """Have `tensor.data` hold what its delegate's buffer holds.

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
    """The thunk, after a check that inputs which another delegate keeps in buffers are readable; itself where there are none."""
    foreign = [t for t in node.inputs if t is not None and t.delegate is not None and t.delegate is not node.delegate]
    if not foreign:
        return thunk

    def run() -> None:
        for tensor in foreign:
            if tensor.data_is_stale:
                ensure_readable(context, tensor)
        thunk()

    return run


def set_buffer_handle(context: Context, tensor: Tensor, handle: Any, delegate: Delegate) -> None:
    """Say that a delegate's buffer stands for a tensor; the buffer that stood for it is freed.

    Args:
        handle: the buffer, as the delegate calls it; None for none any more.

    Raises:
        DelegateError: another delegate has the tensor.
    """
    if tensor.delegate is not None and tensor.delegate is not delegate:
        raise DelegateError(f"{delegate.name} cannot take {tensor}: it belongs to {tensor.delegate.name}.")
    tensor.delegate = delegate
    free_handle(context, tensor)
    tensor.buffer_handle = handle


def free_handle(context: Context, tensor: Tensor) -> None:
    """Let the tensor's delegate free its buffer, if it has one.

    Raises:
        DelegateError: the delegate failed; the buffer stands for the tensor no more.
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
    """Let the delegates free the buffers of these tensors, which are their own again; the first failure is raised at the end."""
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
