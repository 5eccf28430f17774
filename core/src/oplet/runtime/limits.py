"""Limits of memory, nodes, call depth, loop iterations and time, and the meter that ends a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oplet.errors import CancelledError, DeadlineError, LimitError
from oplet.ops.checkpoint import Meter, swap_meter

if TYPE_CHECKING:
    from oplet.model.model import Model

__all__ = ["Limits", "RunMeter"]

#: About the bytes of a tensor's description: its name, shape, quantization and position.
_TENSOR = 512


@dataclass(frozen=True)
class Limits:
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


class RunMeter:
    """The `Meter` of an interpreter's runs: ends a run that was cancelled or is out of time, and refuses memory beyond the limits.

    Attributes:
        reasons: why the run is to end, empty while it is not; a list, since the check between nodes is then cheap.
        charge: charges the memory that kernels allocate for themselves.
        has_deadline: whether `max_seconds` is set.
    """

    def __init__(self, limits: Limits, model: Model, charge: Callable[[int], None]) -> None:
        self.charge = charge
        self.reasons: list[str] = []
        self.has_deadline = limits.max_seconds is not None
        self._seconds = limits.max_seconds
        self._end = float("inf")
        self._model = model
        self._outer: Meter | None = None

    def begin(self) -> None:
        """Begin a run: reset what ended the run before, start the clock, and become this thread's meter."""
        self.reasons.clear()
        if self._seconds is not None:
            self._end = time.monotonic() + self._seconds
        self._outer = swap_meter(self)

    def end(self) -> None:
        """End a run: restore the meter of the enclosing run, if a kernel made this one."""
        swap_meter(self._outer)
        self._outer = None

    def stop(self) -> None:
        """End the run before its next node. Any thread may call it."""
        self.reasons.append("Client requested cancel during Invoke()")

    def check(self) -> None:
        """Check whether the run is to end.

        Raises:
            CancelledError: another thread called `stop`.
            DeadlineError: the run took longer than `max_seconds`.
        """
        if self.reasons:
            raise CancelledError(f"{self.reasons[0]}. {self._model.name} was stopped; it can be invoked again.")
        if self.has_deadline and time.monotonic() > self._end:
            raise DeadlineError(
                f"{self._model.name} took longer than Limits(max_seconds={self._seconds}) allows; it was stopped, and can be invoked again."
            )
