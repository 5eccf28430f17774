"""Limits of what a model may take (memory, nodes, depth, rounds, time), and the meter that ends a run."""

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

#: Bytes that a tensor takes about, besides its values: what is kept of its name, shape, quantization and place.
_TENSOR = 512


@dataclass(frozen=True)
class Limits:
    """What an interpreter allows a model; None for no limit.

    The defaults are far above what real models need, and let no small file take the machine with it. A server that runs
    the models of strangers sets them to what one request is worth.

    Attributes:
        max_arena_bytes: bytes that the tensors of the whole model may take at once, constants apart, which are the file, and with
            them what kernels take for themselves (`oplet.charge`).
        max_tensor_bytes: bytes of any one tensor.
        max_nodes: nodes of all subgraphs together.
        max_call_depth: subgraphs that may call one another in a row; Python's own stack bears about 150.
        max_while_iterations: rounds of one loop.
        max_subgraph_calls: calls of subgraphs in one invoke: they may call one another 2 to the power of their number times.
        max_seconds: time for one `allocate_tensors` or one `invoke`, looked at between nodes,
            and by kernels in long loops (`oplet.checkpoint`): a single call of numpy is not interrupted.

    Raises:
        LimitError: a limit is not positive.

    Example:
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
        """Refuse a model of too many nodes or tensors, before anything is made of them.

        Raises:
            LimitError: it has more nodes than `max_nodes`, or what describes its tensors would take more than `max_arena_bytes`.
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
    """The `Meter` of a run: ends it when another thread asked for that or its time is over, and refuses memory that is not allowed.

    Attributes:
        reasons: empty while nobody asked; a list, because looking at it costs next to nothing between nodes.
        charge: refuses memory that is not allowed, for what kernels take for themselves.
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
        """Start the clock of a run, and forget what was asked of runs before."""
        self.reasons.clear()
        if self._seconds is not None:
            self._end = time.monotonic() + self._seconds
        self._outer = swap_meter(self)

    def end(self) -> None:
        """Restore the enclosing run's checkpoint, if a kernel made this run; there is none otherwise."""
        swap_meter(self._outer)
        self._outer = None

    def stop(self) -> None:
        """End the run before its next node. Any thread may call it."""
        self.reasons.append("Client requested cancel during Invoke()")

    def check(self) -> None:
        """Raise if the run is to end.

        Raises:
            CancelledError: another thread asked for it.
            DeadlineError: it took longer than `max_seconds`.
        """
        if self.reasons:
            raise CancelledError(f"{self.reasons[0]}. {self._model.name} was stopped; it can be invoked again.")
        if self.has_deadline and time.monotonic() > self._end:
            raise DeadlineError(
                f"{self._model.name} took longer than Limits(max_seconds={self._seconds}) allows; it was stopped, and can be invoked again."
            )
