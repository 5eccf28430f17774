"""Errors of kernels, told with the node that they concern."""

from __future__ import annotations

from oplet.errors import LimitError, OpletError
from oplet.ops.context import EnsureError, Node

__all__ = ["explained"]


def explained(cls: type[OpletError], node: Node, error: Exception, what: str, where: str) -> OpletError:
    """The kernel's reason, with the node it concerns; an error of a more telling class keeps its class.

    Args:
        cls: the class of the answer.
        error: what the kernel raised.
        what: what happened, "failed to prepare".
        where: the subgraph and the model.
    """
    if isinstance(error, OpletError) and not isinstance(error, EnsureError):
        cls = type(error) if type(error).__module__ == OpletError.__module__ else cls
    reason = str(error) if isinstance(error, OpletError) else f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError):
        cls, reason = LimitError, f"There is not enough memory: {error}"
    origin = ""
    if node.registration is not None and not isinstance(error, OpletError):
        origin = f" in the kernel of {node.registration.provenance}"
    reads = ", ".join(str(tensor) for tensor in node.inputs if tensor is not None) or "nothing"
    writes = ", ".join(map(str, node.outputs)) or "nothing"
    return cls(
        f"{reason.rstrip('.')}. Node number {node.index} ({node.op_name}) {what}{origin}: it reads {reads} and writes {writes} "
        f"in {where}."
    )
