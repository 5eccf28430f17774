"""What a model may take: memory, nodes, depth, rounds, time. And how another thread stops it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oplet.errors import CancelledError, DeadlineError, LimitError
from oplet.ops.checkpoint import Meter, swap_meter
from oplet.ops.strings import held_nbytes

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.ops.context import Node
    from oplet.ops.tensor import Tensor

__all__ = ["Limits", "Memory", "Watch"]

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
        subgraphs = model.outline.subgraphs or ()
        count = sum(len(subgraph.operators or ()) for subgraph in subgraphs)
        if self.max_nodes is not None and count > self.max_nodes:
            raise LimitError(f"{model.name} has {count} nodes; Limits(max_nodes={self.max_nodes}) allows no more.")
        count = sum(len(subgraph.tensors or ()) for subgraph in subgraphs)
        if self.max_arena_bytes is not None and count * _TENSOR > self.max_arena_bytes:
            raise LimitError(
                f"{model.name} has {count} tensors, whose descriptions alone take about {count * _TENSOR} bytes; "
                f"Limits(max_arena_bytes={self.max_arena_bytes}) allows no more."
            )


class Watch:
    """Tells a run when to stop: another thread asked for it, or its time is over.

    Attributes:
        reasons: empty while nobody asked; a list, because looking at it costs next to nothing between nodes.
        charge: refuses memory that is not allowed, for what kernels take for themselves.
    """

    def __init__(self, limits: Limits, model: Model, memory: Memory) -> None:
        self.charge = memory.charge
        self.reasons: list[str] = []
        self.has_deadline = limits.max_seconds is not None
        self._seconds = limits.max_seconds
        self._end = float("inf")
        self._model = model
        self._outer: Meter | None = None

    def begin(self) -> None:
        """A run begins: what was asked before concerned others, and the clock starts."""
        self.reasons.clear()
        if self._seconds is not None:
            self._end = time.monotonic() + self._seconds
        self._outer = swap_meter(self)

    def end(self) -> None:
        """The run is over: kernels' checkpoints are those of the run around it again, if it was made by a kernel."""
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


class Memory:
    """The bytes that a model's tensors hold, and whether more are allowed."""

    def __init__(self, limits: Limits, model: Model) -> None:
        self._model = model
        self._most_of_one = math.inf if limits.max_tensor_bytes is None else limits.max_tensor_bytes
        self._most_together = math.inf if limits.max_arena_bytes is None else limits.max_arena_bytes
        self._strings: dict[Tensor | Node, int] = {}  # of tensors, besides their arrays
        self._own: dict[Tensor | Node, int] = {}  # tensors with memory outside of the arenas, nodes with what their kernels made
        self._total = 0
        self._planned: Node | None = None  # the node whose kernel is being prepared or bound

    def check_tensor(self, tensor: Tensor) -> int:
        """Refuse a tensor that is too large; return its bytes.

        Raises:
            LimitError: it takes more than `max_tensor_bytes`.
        """
        nbytes = math.prod(tensor.shape) * tensor.dtype.itemsize
        if nbytes > self._most_of_one:
            raise LimitError(
                f"{tensor} takes {nbytes} bytes; Limits(max_tensor_bytes={self._most_of_one}) allows no more in {self._model.name}."
            )
        return nbytes

    def take(self, tensor: Tensor) -> None:
        """A tensor gets memory of its own, in place of what it has.

        Raises:
            LimitError: it is too large, or all together are.
        """
        nbytes = self.check_tensor(tensor)
        self.give_back(tensor)
        if self._total + nbytes > self._most_together:
            self.check_arena(nbytes, tensor)
        self._own[tensor] = nbytes
        self._total += nbytes

    def keep(self, nbytes: int, what: str) -> None:
        """Count what is kept as long as the interpreter: constants that are no views of the file.

        Raises:
            LimitError: with it, the model would take more than `max_arena_bytes`.
        """
        if self._total + nbytes > self._most_together:
            raise LimitError(
                f"The constant {what} would take {nbytes} bytes once it is unpacked, and {self._model.name} {self._total + nbytes} with it; "
                f"Limits(max_arena_bytes={self._most_together}) allows no more."
            )
        self._total += nbytes

    def give_back(self, owner: Tensor | Node) -> None:
        """A tensor, or a node's kernel, has no memory of its own any more."""
        self._total -= self._own.pop(owner, 0)
        if self._strings:
            self._total -= self._strings.pop(owner, 0)

    def hold_strings(self, tensor: Tensor) -> None:
        """Count the strings that a tensor has now, in place of those that it had; the array that holds them is counted already.

        Raises:
            LimitError: with them, the model takes more than `max_arena_bytes`.
        """
        nbytes = held_nbytes(tensor.data)
        self._total += nbytes - self._strings.pop(tensor, 0)
        self._strings[tensor] = nbytes
        if self._total > self._most_together:
            raise LimitError(
                f"The strings of {tensor} take {nbytes} bytes, and {self._model.name} takes {self._total} with them; "
                f"Limits(max_arena_bytes={self._most_together}) allows no more."
            )

    def plan_for(self, node: Node | None) -> Node | None:
        """Have what is charged from now on belong to a node, None for nobody; returns the node it belonged to so far."""
        before, self._planned = self._planned, node
        return before

    def charge(self, nbytes: int) -> None:
        """Refuse what a kernel takes for itself if it is too much; while its node is prepared or bound, count it too.

        Raises:
            LimitError: with it, the model would take more than `max_arena_bytes`.
        """
        if self._total + nbytes > self._most_together:
            raise LimitError(
                f"{self._planned or 'A node'} would take {nbytes} bytes besides its tensors, and {self._model.name} {self._total + nbytes} "
                f"with them; Limits(max_arena_bytes={self._most_together}) allows no more."
            )
        if self._planned is not None:
            self._own[self._planned] = self._own.get(self._planned, 0) + nbytes
            self._total += nbytes

    def check_arena(self, nbytes: int, largest: Tensor) -> None:
        """Refuse more memory than is allowed.

        Args:
            nbytes: what is asked for, besides what tensors have of their own.
            largest: the largest part of it, for the message.

        Raises:
            LimitError: all together would take more than `max_arena_bytes`.
        """
        total = self._total + nbytes
        if total > self._most_together:
            raise LimitError(
                f"The tensors of {self._model.name} would take {total} bytes; Limits(max_arena_bytes={self._most_together}) allows "
                f"no more, and the largest of those that are placed now is {largest}."
            )
