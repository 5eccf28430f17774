"""Limits of memory, nodes, call depth, loop iterations and time, as applications give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oplet.errors import LimitError
from oplet.records import Record

if TYPE_CHECKING:
    from oplet.model.model import Model

__all__ = ["USUAL", "Limits"]

#: About the bytes of a tensor's description: its name, shape, quantization and position.
_TENSOR = 512


class Limits(Record):
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

    max_arena_bytes: int | None = 16 << 30
    max_tensor_bytes: int | None = 8 << 30
    max_nodes: int | None = 1_000_000
    max_call_depth: int | None = 50
    max_while_iterations: int | None = 10_000_000
    max_subgraph_calls: int | None = 20_000_000
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
                raise LimitError(f"The limit {name} is {value!r}; give a positive number, or None for no limit.")

    def check_nodes(self, model: Model) -> None:
        """Check the numbers of nodes and tensors, before objects are made of them.

        Raises:
            LimitError: there are more nodes than `max_nodes`, or the tensors' descriptions would take more than `max_arena_bytes`.
        """
        subgraphs = model.lazy_root.subgraphs or ()
        count = sum(len(subgraph.operators or ()) for subgraph in subgraphs)
        if self.max_nodes is not None and count > self.max_nodes:
            raise LimitError(f"{model.name} has {count} nodes; Limits(max_nodes={self.max_nodes}) allows no more.")
        count = sum(len(subgraph.tensors or ()) for subgraph in subgraphs)
        if self.max_arena_bytes is not None and count * _TENSOR > self.max_arena_bytes:
            raise LimitError(
                f"{model.name} has {count} tensors, whose descriptions alone take about {count * _TENSOR} bytes; "
                f"Limits(max_arena_bytes={self.max_arena_bytes}) allows no more."
            )


#: Those of every interpreter that is given no limits.
USUAL = Limits()
