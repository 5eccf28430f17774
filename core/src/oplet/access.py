"""Access to the inside of an interpreter, for tools and test kits; `oplet.toolkit` has these names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oplet.errors import StateError

# Everything else is imported late: an interpreter that runs a plan from disk needs none of it.
if TYPE_CHECKING:
    from oplet.ops.context import Context, Node
    from oplet.ops.tensor import Tensor
    from oplet.runtime.describe.profiler import Profiler
    from oplet.runtime.interpreter import Interpreter
    from oplet.runtime.subgraph import Subgraph

__all__ = [
    "SubgraphRunner",
    "inline_alike",
    "prepare_claimed",
    "profiled",
    "resize_now",
    "store_plan",
    "unshare_plan",
]


class SubgraphRunner:
    """Runs one subgraph of an interpreter, also one that no signature has; its tensors go by their indices.

    It copies no outputs, and does not look whether numpy views of tensors are alive, as `Interpreter.tensor` makes them.

    Args:
        interpreter: the interpreter.
        index: the subgraph's index.

    Attributes:
        index: the subgraph's index.

    Examples:
        >>> runner = SubgraphRunner(interpreter, interpreter.get_signature_runner("decode").subgraph_index)  # doctest: +SKIP
        >>> runner.resize(0, (4, 8))  # doctest: +SKIP
        >>> runner.allocate()  # doctest: +SKIP
    """

    def __init__(self, interpreter: Interpreter, index: int = 0) -> None:
        self._interpreter = interpreter
        self.index = index

    @property
    def subgraph(self) -> Subgraph:
        """The subgraph."""
        return self._interpreter._subgraphs[self.index]

    @property
    def context(self) -> Context:
        """The context of its kernels."""
        return self._interpreter._executors[self.index].context

    def resize(self, tensor: int, shape: tuple[int, ...]) -> None:
        """Give an input another shape; `allocate` is needed before the next `invoke`.

        Args:
            tensor: the input's index.
            shape: its new shape.

        Raises:
            TensorError: there is no such subgraph (a ValueError).
            OpletError: the tensor is no input, or cannot have this shape.
        """
        self._interpreter._resize(tensor, shape, self.index)

    def allocate(self) -> None:
        """Prepare the subgraph for its inputs' shapes and give every tensor its memory; nothing happens if it is ready.

        Raises:
            OpletError: as `Interpreter.allocate_tensors` raises.
        """
        self._interpreter._allocate(self.index)

    def set(self, tensor: int, value: Any) -> None:
        """Copy a value into a tensor.

        Args:
            tensor: the tensor's index.
            value: an array of exactly its dtype and shape.

        Raises:
            TensorError: as `Interpreter.set_tensor` raises (a ValueError).
        """
        self._interpreter._set(tensor, value, self.index)

    def invoke(self) -> None:
        """Run the subgraph.

        Raises:
            OpletError: as `Interpreter.invoke` raises.
        """
        self._interpreter._invoke(self.index)

    def tensor(self, tensor: int) -> Tensor:
        """Return a tensor whose array has its value, copied from a delegate's buffer where that is newer; the next run overwrites it.

        Args:
            tensor: the tensor's index.

        Raises:
            TensorError: there is no such tensor, or it has no memory yet (a ValueError).
            DelegateError: the delegate cannot copy the value.
        """
        return self._interpreter._readable(tensor, self.index)

    def details(self, tensor: int) -> dict[str, Any]:
        """Return a tensor's details, as `Interpreter.get_tensor_details` does.

        Args:
            tensor: the tensor's index.

        Raises:
            TensorError: there is no such tensor (a ValueError).
        """
        return self._interpreter._get_tensor_details(tensor, self.index)

    def bind_alone(self, node: Node) -> None:
        """Bind the only node of the subgraph's plan to the arrays that its tensors have now; the next `invoke` runs it so.

        Args:
            node: the node, which is prepared.

        Raises:
            PrepareError: its kernel fails to.
        """
        from oplet.runtime.execution.binding import bind_node

        [segment] = self.subgraph.segments
        segment.thunks[:] = [bind_node(self._interpreter._executors[self.index].context, node)]
        segment.unjoin()


def inline_alike(interpreter: Interpreter, other: Interpreter) -> None:
    """Inline in an interpreter the decompositions that delegates have had inlined in another one of the same model.

    Args:
        interpreter: the interpreter that is changed; it has no delegates.
        other: the interpreter with delegates.
    """
    from oplet.runtime.delegation.inlining import inline_alike

    inline_alike(interpreter._executors, other._subgraphs)


@contextmanager
def profiled(interpreter: Interpreter, profiler: Profiler | None) -> Iterator[None]:
    """Context manager in which another profiler than its own records an interpreter's runs, delegates' kernels as a whole.

    Args:
        interpreter: the interpreter.
        profiler: the profiler; None to record nothing.
    """
    session = interpreter._session
    before = session.profiler, session.force_delegate_profiling
    session.profiler, session.force_delegate_profiling = profiler, True
    try:
        yield
    finally:
        session.profiler, session.force_delegate_profiling = before


def store_plan(interpreter: Interpreter) -> None:
    """Run a model once, on whatever its inputs are, and store its plan on disk, where it has one, for interpreters that are made later.

    Args:
        interpreter: the interpreter, whose tensors are allocated.
    """
    interpreter._keep_plan()


def unshare_plan(interpreter: Interpreter) -> None:
    """Have an interpreter neither take over the bound plan of another one nor leave its own: a test changes parts of it.

    Args:
        interpreter: the interpreter.
    """
    interpreter._shares_plans = False
    interpreter._rebind()


def prepare_claimed(outside: Context, inside: Context, node: Node) -> None:
    """Prepare a node that a delegate has claimed, with the first provider that does not decline it, as the runtime does.

    Args:
        outside: the runtime's context, which the delegate's kernel gets.
        inside: the context that the node's own kernel gets.
        node: the node.

    Raises:
        StateError: `outside` is another context than the runtime's, or nothing serves the node.
        PrepareError: the node's kernel refuses it, or all providers decline it.
    """
    from oplet.ops.ensure import Declined
    from oplet.runtime.execution.fallback import fall_back
    from oplet.runtime.execution.initialization import initialize_provider
    from oplet.runtime.execution.kernel_context import KernelContext

    if not isinstance(outside, KernelContext):
        raise StateError(f"{node} is prepared in the runtime's own context, not in a {type(outside).__name__}.")
    if node.providers is not None:
        node.providers.restart()
    while True:
        node.temporaries = []
        if not initialize_provider(outside, node):
            continue
        registration = node.registration
        if registration is None:
            raise StateError(f"{node} has no kernel.")
        try:
            if registration.prepare is not None:
                registration.prepare(inside, node)
            return
        except Declined as declined:
            fall_back(outside, node, declined)


def resize_now(tensor: Tensor, shape: Sequence[int]) -> None:
    """Give a tensor a shape, and memory of its own unless it has that shape and memory that can be written.

    Args:
        tensor: the tensor, which a delegate's kernel has inside its partition, or an output of it that is dynamic.
        shape: its new shape.

    Raises:
        EnsureError: no tensor can have this shape.
    """
    from oplet.runtime.execution.checks import checked_shape
    from oplet.runtime.memory.arrays import new_array

    wanted = checked_shape(tensor, shape)
    if tensor.shape != wanted or not tensor.has_data or not tensor.data.flags.writeable:
        tensor.shape = wanted
        tensor.set_memory(new_array(tensor))
        tensor.resized = True
