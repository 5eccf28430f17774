"""Binding: from a node whose tensors have their memory to the thunk that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from oplet.errors import PluginError, PrepareError, StateError, failures
from oplet.ops.context import Declined, EnsureError, Node, UnfitError
from oplet.ops.node import Thunk
from oplet.ops.tensor import Tensor
from oplet.runtime.execution.checks import with_write_check
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.memory.accounting import MemoryAccount
from oplet.runtime.memory.buffer_handles import with_readable_inputs
from oplet.runtime.subgraph import Segment
from oplet.schema.enums import TensorType

__all__ = ["bind_node", "bind_segment"]


def bind_segment(context: KernelContext, segment: Segment, start: int = 0) -> None:
    """Bind each node of a segment (part of the plan, from position `start` on) to its arrays; raises what `bind_node` raises."""
    positions = {} if start else {index: at for at, index in enumerate(context.subgraph.execution_plan[: segment.end])}
    for node in segment.nodes:
        thunk = bind_node(context, node)
        segment.thunks.append(with_readable_inputs(context, node, thunk))
        if positions and node.delegate is None and (kernel := node.registration) is not None and kernel.bind is not None:
            context.let_go(node, positions[node.index])


def bind_node(context: KernelContext, node: Node) -> Thunk:
    """Return the thunk that runs a node: what its kernel's `bind` returns, or a call of its `invoke`.

    Where `bind` refuses the node, for the values or sizes of its inputs, the thunk raises that error when it is called: the node
    may be in a branch that is never taken, and LiteRT checks these only at run time.

    Raises:
        StateError: the node has no kernel, or its kernel has neither `bind` nor `invoke`.
        PrepareError: `bind` fails.
    """
    thunk = _bound(context, node)
    for tensor in node.outputs:
        if tensor.dtype.hasobject:
            strings = [tensor for tensor in node.outputs if tensor.type is TensorType.STRING]
            return partial(_run_counted, thunk, strings, context.session.memory) if strings else thunk
    return thunk


def _bound(context: KernelContext, node: Node) -> Thunk:
    registration, session = node.registration, context.session
    memory = session.memory
    if registration is None:
        raise StateError(f"Encountered an unresolved custom op. Did you miss a custom op or delegate? {node} has no kernel.")
    outer, memory.charged_to = memory.charged_to, node
    try:
        if registration.bind is not None:
            thunk = registration.bind(context, node)
            if not callable(thunk):
                raise PluginError(f"The kernel's bind returns {thunk!r} in place of a function that runs the node")
            return with_write_check(node, thunk) if session.checks else thunk
    except EnsureError as error:
        if isinstance(error, Declined):
            raise context.node_error(PrepareError, node, error, "failed to prepare") from error
        return partial(_refuse, str(error))
    except failures() as error:
        raise context.node_error(PrepareError, node, error, "failed to prepare") from error
    finally:
        memory.charged_to = outer
    if registration.invoke is None:
        raise StateError(f"{node} has neither invoke nor bind.")
    thunk = partial(registration.invoke, context, node)
    return with_write_check(node, thunk) if session.checks else thunk


def _refuse(message: str) -> None:
    """Raise, when a node runs, the error with which its kernel's `bind` refused it."""
    raise UnfitError(message)


def _run_counted(thunk: Thunk, strings: Sequence[Tensor], memory: MemoryAccount) -> None:
    """Run a node, and count the strings in its outputs in the memory account, which checks the limits."""
    thunk()
    for tensor in strings:
        if tensor.has_data:
            memory.charge_strings(tensor)
