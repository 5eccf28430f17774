"""Limits of memory, nodes, call depth, loop iterations and time, as applications give them."""

from __future__ import annotations

from dataclasses import dataclass

from oplet.errors import LimitError
from oplet.runtime.memory.accounting import Bounds

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits(Bounds):
    """Limits of what a model may use; None for no limit.

    The defaults are far above what real models need, and keep a small file from using up the machine. A server that runs
    untrusted models should set them to what one request may cost.

    Attributes:
        max_arena_bytes: bytes of all tensors of the model at once, and of the memory that kernels allocate for themselves
            (`oplet.charge`); constants in the file do not count.
        max_tensor_bytes: bytes of any one tensor.
        max_nodes: nodes of all subgraphs together.
        max_call_depth: nested calls of subgraphs; Python's own stack allows about 150.
        max_while_iterations: iterations of one loop.
        max_subgraph_calls: calls of subgraphs in one invoke, whose number may grow exponentially with the number of subgraphs.
        max_seconds: seconds for one `allocate_tensors` or one `invoke`, checked between nodes, and by kernels in long loops
            (`oplet.checkpoint`); a single call of numpy is not interrupted.

    Raises:
        LimitError: a limit is no positive number.

    Examples:
        >>> from oplet import Limits
        >>> Limits(max_arena_bytes=64 << 20, max_seconds=2.0).max_nodes
        1000000
    """

    max_arena_bytes: int | None = Bounds.max_arena_bytes
    max_tensor_bytes: int | None = Bounds.max_tensor_bytes
    max_nodes: int | None = Bounds.max_nodes
    max_call_depth: int | None = Bounds.max_call_depth
    max_while_iterations: int | None = Bounds.max_while_iterations
    max_subgraph_calls: int | None = Bounds.max_subgraph_calls
    max_seconds: float | None = Bounds.max_seconds

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
                raise LimitError(f"The limit {name} is {value!r}; give a positive number, or None for no limit.")
