"""What a kernel is given: its node, and the context in which it prepares and runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oplet.ops.callee import Callee
from oplet.ops.ensure import Declined, EnsureError, decline, ensure, ensure_eq
from oplet.ops.node import KernelCache, Node
from oplet.ops.tensor import Allocation, Array, Tensor, TensorBuilder, numpy_dtype, tensor_type
from oplet.schema.enums import TensorType

__all__ = ["Context", "Declined", "EnsureError", "KernelCache", "Node", "decline", "ensure", "ensure_eq", "ensure_type"]


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
    """What a kernel may ask of the graph that it is part of; the runtime implements it."""

    #: Threads that a kernel may use.
    num_threads: int = 1
    #: How often a loop may go round before it is taken for endless.
    max_while_iterations: int = 10_000_000
    #: How often a caller started this subgraph afresh. A kernel with a state of its own that `prepare` sets up, such as
    #: a random generator, sets it up again when this number has changed.
    restarts: int = 0

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Set a tensor's shape: an output or temporary in `prepare`, a dynamic output in `invoke`.

        In `invoke` the tensor's `data` is a fresh array of the new shape afterwards, or the one it has if that fits.

        Raises:
            EnsureError: a dimension is negative or the shape holds more elements than can be addressed.
        """
        raise NotImplementedError

    def set_type(self, tensor: Tensor, type: Any) -> None:
        """Correct, in `prepare`, an output's element type: some kernels derive it from their inputs, as LiteRT's do.

        Args:
            type: a TensorType or a numpy dtype.

        Raises:
            EnsureError: the tensor is a constant of another type.
        """
        if tensor.type is type:
            return
        type = tensor_type(type)
        ensure(not tensor.is_constant and not tensor.is_variable, f"{tensor} cannot become {type.name}.")
        tensor.type = type
        tensor.dtype = numpy_dtype(type)
        tensor.set_memory(None)

    def set_dynamic(self, tensor: Tensor) -> None:
        """Say, in `prepare`, that the output's shape depends on data; `invoke` then calls `resize_tensor`."""
        raise NotImplementedError

    def set_constant(self, tensor: Tensor, value: Array) -> None:
        """Give, in `prepare`, the output's value, which follows from shapes alone (SHAPE, RANK); it need not run."""
        raise NotImplementedError

    def add_tensor(self, builder: TensorBuilder) -> int:
        """Add a tensor to the graph, in `init` or `prepare`, and return its index in `tensors`.

        It gets memory when it is one of `node.temporaries` after `prepare`, which forgets those of the time before:

            node.temporaries = [context.tensors[node.user_data.index]]

        `add_temporary` does both in one call. A tensor belongs to one node.

        Raises:
            EnsureError: the allocation is none that a kernel may ask for.
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
        """Ask, in `prepare`, for scratch memory; it is there in `bind` and `invoke`, also in `node.temporaries`.

        Args:
            type: a TensorType or a numpy dtype.
            allocation: ARENA (valid during the node's own invoke), PERSISTENT (kept between invokes, and between
                prepares that leave its shape alone) or DYNAMIC (resized in `invoke`). A PERSISTENT one whose
                `is_variable` the kernel sets is zeroed where the model's variables are.
        """
        raise NotImplementedError

    def offer_memory(self, tensor: Tensor, array: Array) -> None:
        """Offer, in `prepare`, memory for an input or output of the node to live in, so that nothing need be copied there.

        For kernels that hand their work to an engine with memory of its own. Others write into an input's and read an
        output's, so they must find there, until the next run, what was written. The offer is good for this prepare; the
        first one for a tensor counts, and it is left if the tensor cannot move (a constant, a state, one that was
        prepared before). In `bind`, `tensor.data is array` says whether it was taken.

        Args:
            array: of the tensor's shape and dtype, writeable; it must stay good as long as somebody holds it.
        """

    def drop_computed(self, node: Node) -> None:
        """Let go, in a delegate's kernel's `bind`, of what its nodes computed for one another while shapes were worked out.

        Those are constants, unpacked weights for instance, which an engine has from the file. They are computed again when the
        graph is prepared next.

        Args:
            node: the kernel's own.
        """

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, temporaries included."""
        raise NotImplementedError

    def callee(self, index: int) -> Callee:
        """Another subgraph of the model, for a node that calls it. Each has one `Callee`, shared by all its callers.

        Raises:
            EnsureError: the model has no such subgraph, or the call would lead back to its caller.
        """
        raise NotImplementedError

    def parallel(self, parts: Sequence[Callable[[], None]]) -> Callable[[], None]:
        """Have, in `bind`, parts of a kernel's work run at once: a thunk that runs them all and returns when all are done.

        Args:
            parts: at most `num_threads`; none may change what another one reads or writes. They should be long compared
                with the 50 microseconds or so that it takes to hand them over, and let go of Python's lock, as numpy does.
        """
        steps = tuple(parts)

        def run() -> None:
            for step in steps:
                step()

        return run

    def record_operator(self, node: Node, start: float, seconds: float) -> None:
        """Tell the profiler, from a delegate's kernel, of one operator that it ran; see `DelegateFlags.PER_OPERATOR_PROFILING`.

        Args:
            node: one of the nodes that the kernel replaces.
            start: when it began, in seconds on the clock of `time.perf_counter`.
            seconds: how long it took.
        """
        raise NotImplementedError

    @property
    def resources(self) -> dict[Any, Any]:
        """State that outlives an invoke and is shared by all subgraphs of the interpreter: variables, tables.

        The built-in ops keep resource variables and hash tables here, by their number. Other packages use keys of
        their own, such as `("my_package", name)`.
        """
        raise NotImplementedError
