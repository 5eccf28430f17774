"""The context of kernels: the part of the runtime that they may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oplet.ops.ensure import Declined, EnsureError, UnfitError, decline, ensure, ensure_fits
from oplet.ops.node import KernelCache, Node
from oplet.ops.tensor import Allocation, Array, Tensor, TensorBuilder, numpy_dtype, tensor_type
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from oplet.ops.callee import Callee

__all__ = [
    "Context",
    "Declined",
    "EnsureError",
    "KernelCache",
    "Node",
    "UnfitError",
    "decline",
    "ensure",
    "ensure_fits",
    "ensure_type",
]


def ensure_type(tensor: Tensor, *types: Any) -> None:
    """Refuse the node unless the tensor's type is one of `types`, each a TensorType or a numpy dtype.

    Raises:
        EnsureError: the type is another one.
    """
    if tensor.type not in types:
        if tensor.type in (known := [tensor_type(each) for each in types]):
            return
        wanted = " or ".join(each.name for each in known)
        raise EnsureError(f"{tensor} is of type {tensor.type.name}, this op takes {wanted} here.")


class Context:
    """Interface of the runtime for kernels, which get it with their node. The runtime implements it."""

    #: Number of threads that a kernel may use.
    num_threads: int = 1
    #: Whether kernels compute what LiteRT's default delegate, XNNPACK, computes where it takes the node; else what LiteRT's own do.
    default_delegates: bool = True
    #: The folder that the program lets the model save and restore variables in; None for nowhere.
    checkpoint_folder: str | None = None
    #: Number of iterations after which a loop is refused as endless.
    max_while_iterations: int = 10_000_000
    #: Number of times that a caller restarted this subgraph. A kernel with a state of its own that `prepare` initializes, such as a
    #: random generator, initializes it again when this number has changed.
    restarts: int = 0

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Set a tensor's shape: an output or temporary in `prepare`, a dynamic output in `invoke`. In `prepare` also that of scratch
        memory that the file names: an input of a custom op that is no constant and that no node writes (Vela, xcore).

        In `invoke`, `data` is then a new array of this shape, or the existing one if it has this shape.

        Raises:
            EnsureError: a dimension is negative, or the shape has more elements than can be addressed.
        """
        raise NotImplementedError

    def set_type(self, tensor: Tensor, type: Any) -> None:
        """Set, in `prepare`, the element type of an output, for kernels that derive it from their inputs as LiteRT's do.

        Args:
            type: a TensorType or a numpy dtype.

        Raises:
            EnsureError: the tensor is a constant or variable of another type.
        """
        if tensor.type is type:
            return
        type = tensor_type(type)
        ensure(not tensor.is_constant and not tensor.is_variable, f"{tensor} cannot become {type.name}.")
        tensor.type = type
        tensor.dtype = numpy_dtype(type)
        tensor.set_memory(None)

    def set_dynamic(self, tensor: Tensor) -> None:
        """Declare, in `prepare`, that the output's shape depends on values; `invoke` then sets it with `resize_tensor`."""
        raise NotImplementedError

    def set_constant(self, tensor: Tensor, value: Array) -> None:
        """Set, in `prepare`, the value of an output that depends only on shapes (SHAPE, RANK); the node then need not run."""
        raise NotImplementedError

    def add_tensor(self, builder: TensorBuilder) -> int:
        """Add a tensor to the graph, in `init` or `prepare`, and return its index in `tensors`.

        The tensor gets memory only if `prepare` puts it into `node.temporaries`, which is emptied before each prepare:

            node.temporaries = [context.tensors[node.user_data.index]]

        `add_temporary` does both in one call. A tensor belongs to one node.

        Raises:
            EnsureError: the allocation is not DYNAMIC, ARENA or PERSISTENT.
        """
        raise NotImplementedError

    def add_temporary(
        self,
        node: Node,
        shape: Sequence[int],
        type: Any = TensorType.FLOAT32,
        *,
        allocation: Allocation = Allocation.ARENA,
        name: str = "",
    ) -> Tensor:
        """Request, in `prepare`, a scratch tensor. It has memory in `bind` and `invoke`, and is added to `node.temporaries`.

        Args:
            shape: its shape.
            type: a TensorType or a numpy dtype.
            allocation: ARENA (valid during the node's own run), PERSISTENT (kept between runs, and between prepares that do not
                change its shape and type) or DYNAMIC (resized in `invoke`). A PERSISTENT tensor whose `is_variable` the kernel sets is
                zeroed together with the model's variables.
            name: its name in messages.
        """
        raise NotImplementedError

    def offer_memory(self, tensor: Tensor, array: Array) -> None:
        """Offer, in `prepare`, memory for an input or output of the node, to save copies.

        It is for kernels that use an engine with memory of its own. Other nodes write an input and read an output there, so the memory
        must keep its values until the next run. The offer holds for this prepare. Only the first offer for a tensor counts, and none
        for a tensor that cannot move: a constant, a variable, or one whose memory is already planned. In `bind`,
        `tensor.data is array` tells whether the offer was accepted.

        Args:
            array: a writeable array of the tensor's shape and dtype; its memory must stay valid as long as the array is referenced.
        """

    def drop_computed(self, node: Node) -> None:
        """Free, in `bind` of a delegate's kernel, the constants that were computed for the nodes of its partition.

        They are outputs of nodes with constant inputs, such as unpacked weights, which the engine has read from the file itself. They
        are computed again when the graph is next prepared.

        Args:
            node: the node of the delegate's kernel.
        """

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, temporaries included."""
        raise NotImplementedError

    def callee(self, index: int) -> Callee:
        """Return another subgraph of the model, for a node that calls it. All callers of a subgraph share one `Callee`.

        Args:
            index: the subgraph's number in the model.

        Raises:
            EnsureError: the model has no such subgraph, or the call would be recursive.
        """
        raise NotImplementedError

    def parallel(self, parts: Sequence[Callable[[], None]]) -> Callable[[], None]:
        """Return a function that runs parts of a kernel's work in parallel and returns when all are done; for `bind`.

        Args:
            parts: at most `num_threads` functions; none may write what another one reads or writes. Each should take much longer than
                the 50 microseconds or so that starting it takes, and release Python's global lock, as numpy does.
        """
        steps = tuple(parts)

        def run() -> None:
            for step in steps:
                step()

        return run

    def record_operator(self, node: Node, start: float, seconds: float) -> None:
        """Report to the profiler, from a delegate's kernel, one operator that it ran (`DelegateFlags.PER_OPERATOR_PROFILING`).

        Args:
            node: one of the nodes that the kernel replaces.
            start: when it began, in seconds on the clock of `time.perf_counter`.
            seconds: its duration in seconds.
        """
        raise NotImplementedError

    @property
    def resources(self) -> dict[Any, Any]:
        """State that is kept between runs and shared by all subgraphs of the interpreter.

        Built-in ops store resource variables and hash tables here under their numbers. Other packages use keys of their own, such
        as `("my_package", name)`.
        """
        raise NotImplementedError
