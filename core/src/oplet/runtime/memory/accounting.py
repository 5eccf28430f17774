"""Limits of what a model may use, and its memory account: the bytes that its tensors and kernels have allocated, checked against them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from oplet.errors import LimitError
from oplet.ops.strings import held_nbytes
from oplet.records import Record
from oplet.runtime.memory.arrays import new_array

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.ops.context import Node
    from oplet.ops.tensor import Array, Tensor

__all__ = ["USUAL", "Limits", "MemoryAccount"]

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


#: The part of `max_arena_bytes` that a tensor's strings may seem to take before it is counted which of them are the same object.
_ROUGHLY = 64
#: Drops of kept memory that are subtracted together.
_FEW = 1024


class MemoryAccount:
    """The bytes that the tensors and kernels of one interpreter have allocated, outside of the arenas, checked against its limits.

    Attributes:
        charged_to: the node whose kernel is being prepared or bound, for which `charge` counts memory; None for no node.
        unpacks: whether the model has constants that are unpacked when they are read.
    """

    def __init__(self, limits: Limits, model: Model) -> None:
        self._model = model
        self._most_of_one = math.inf if limits.max_tensor_bytes is None else limits.max_tensor_bytes
        self._most_together = math.inf if limits.max_arena_bytes is None else limits.max_arena_bytes
        self._strings: dict[Tensor | Node, int] = {}  # bytes of strings by tensor, besides the arrays that refer to them
        self._own: dict[object, int] = {}  # bytes by tensor outside of the arenas, and by node for its kernel's own memory
        self._total = self._kept = 0
        #: Bytes of `_kept` that are gone: collections may add to it while another thread counts.
        self._dropped: deque[int] = deque()
        self.charged_to: Node | None = None
        self.unpacks = False

    def check_tensor(self, tensor: Tensor) -> int:
        """Return the bytes of a tensor.

        Raises:
            LimitError: the tensor has more than `max_tensor_bytes`.
        """
        nbytes = math.prod(tensor.shape) * tensor.dtype.itemsize
        if nbytes > self._most_of_one:
            raise LimitError(
                f"{tensor} takes {nbytes} bytes; Limits(max_tensor_bytes={self._most_of_one}) allows no more in {self._model.name}."
            )
        return nbytes

    def charge_tensor(self, tensor: Tensor) -> None:
        """Count the array that a tensor is about to get against the limits, in place of the one that it has.

        Raises:
            LimitError: the array exceeds `max_tensor_bytes`, or all memory together exceeds `max_arena_bytes`.
        """
        nbytes = self.check_tensor(tensor)
        if tensor in self._own or self._strings:
            self.release(tensor)
        if self._total + nbytes > self._most_together:
            self.check_arena(nbytes, tensor)
        self._own[tensor] = nbytes
        self._total += nbytes

    def new_array(self, tensor: Tensor, *, zeroed: bool = True) -> Array:
        """Return a new array of the tensor's shape and dtype, counted against the limits.

        Args:
            tensor: the tensor.
            zeroed: whether the values are 0; they are undefined otherwise.

        Raises:
            LimitError: the array exceeds the limits, or the memory of the machine.
        """
        self.charge_tensor(tensor)
        try:
            return new_array(tensor, zeroed=zeroed)
        except (MemoryError, ValueError):
            raise self.out_of_memory(tensor.nbytes, tensor) from None

    def out_of_memory(self, nbytes: int, largest: Tensor) -> LimitError:
        """Return the error for an allocation that the machine has no memory for."""
        return LimitError(f"There is no memory for {nbytes} bytes in {self._model.name}; the largest part is {largest}.")

    def charge_constant(self, nbytes: int, what: str, computed: object = None) -> None:
        """Count a constant that is no view of the file, for as long as the interpreter lives.

        Args:
            nbytes: its size in memory.
            what: the tensor, for the message.
            computed: what stands for the constant, which counts once then.

        Raises:
            LimitError: with it, the model would take more than `max_arena_bytes`.
        """
        if computed in self._own:
            return
        if self._exceeds(nbytes):
            raise LimitError(
                f"The constant {what} would take {nbytes} bytes once it is unpacked, and {self._model.name} {self._total + nbytes} with it; "
                f"Limits(max_arena_bytes={self._most_together}) allows no more."
            )
        self._total += nbytes
        if computed is not None:
            self._own[computed] = nbytes

    def release(self, owner: Tensor | Node) -> None:
        """Subtract the bytes that were counted for a tensor, or for the kernel of a node."""
        self._total -= self._own.pop(owner, 0)
        if self._strings:
            self._total -= self._strings.pop(owner, 0)

    def charge_strings(self, tensor: Tensor) -> None:
        """Count the strings that a tensor has now, in place of those that it had; their array is counted already.

        Raises:
            LimitError: with them, the model takes more than `max_arena_bytes`.
        """
        nbytes = held_nbytes(tensor.data, self._most_together / _ROUGHLY)
        self._total += nbytes - self._strings.pop(tensor, 0)
        self._strings[tensor] = nbytes
        if self._exceeds(0):
            raise LimitError(
                f"The strings of {tensor} take {nbytes} bytes, and {self._model.name} takes {self._total} with them; "
                f"Limits(max_arena_bytes={self._most_together}) allows no more."
            )

    @property
    def total(self) -> int:
        """The bytes that are counted now, without arenas."""
        self._settle()
        return self._total

    def charge(self, nbytes: int) -> None:
        """Check bytes that a kernel allocates besides tensors; those of `prepare` and `bind` count until the next prepare.

        Raises:
            LimitError: with it, the model would take more than `max_arena_bytes`.
        """
        if self._exceeds(nbytes):
            raise LimitError(
                f"{self.charged_to or 'A node'} would take {nbytes} bytes besides its tensors, and {self._model.name} {self._total + nbytes} "
                f"with them; Limits(max_arena_bytes={self._most_together}) allows no more."
            )
        if self.charged_to is not None:
            self._own[self.charged_to] = self._own.get(self.charged_to, 0) + nbytes
            self._total += nbytes

    def keep(self, nbytes: int) -> Callable[[int], None]:
        """Count bytes that outlive the run of a node (variables, tables, lists); return a function that subtracts freed ones, in
        any thread.

        Raises:
            LimitError: with them, the model would take more than `max_arena_bytes`.
        """
        if self._exceeds(nbytes):
            raise LimitError(
                f"What {self._model.name} keeps between nodes (variables, tables, lists) would take {self._kept + nbytes} bytes, and all "
                f"{self._total + nbytes} with it; Limits(max_arena_bytes={self._most_together}) allows no more."
            )
        self._kept += nbytes
        self._total += nbytes
        return self._dropped.append

    def _exceeds(self, nbytes: int) -> bool:
        """Return whether further bytes would be more than `max_arena_bytes`."""
        if self._total + nbytes > self._most_together or len(self._dropped) > _FEW:
            self._settle()
        return self._total + nbytes > self._most_together

    def _settle(self) -> None:
        """Subtract what was kept and is gone."""
        while self._dropped:
            gone = self._dropped.popleft()
            self._kept -= gone
            self._total -= gone

    def check_arena(self, nbytes: int, largest: Tensor) -> None:
        """Check that arenas (blocks that tensors share) fit into the limit, together with all bytes that are counted.

        Args:
            nbytes: the bytes of the arenas.
            largest: the largest tensor in the new one, for the message.

        Raises:
            LimitError: all together would take more than `max_arena_bytes`.
        """
        if self._exceeds(nbytes):
            raise LimitError(
                f"The tensors of {self._model.name} would take {self._total + nbytes} bytes; Limits(max_arena_bytes={self._most_together}) allows "
                f"no more, and the largest of those that are placed now is {largest}."
            )
