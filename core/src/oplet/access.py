"""Access to the inside of an interpreter, for tools and test kits; `oplet.toolkit` has these names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oplet.errors import StateError

# Everything else is imported late: an interpreter that runs a plan from disk needs none of it.
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet.ops.context import Context, Node
    from oplet.ops.tensor import Tensor
    from oplet.runtime.execution.session import Backend
    from oplet.runtime.interpreter import Interpreter
    from oplet.runtime.subgraph import Subgraph

__all__ = [
    "SubgraphRunner",
    "inline_composites",
    "prepare_claimed",
    "resize_now",
    "unshare_plan",
]


class SubgraphRunner:
    """Runs any subgraph of an interpreter, whether or not a signature names it; tensors are given by their index in the subgraph.

    Its `invoke` copies no outputs, and may run while numpy views from `Interpreter.tensor` are alive.

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
        self._runtime = interpreter._runtime
        self.index = index

    @property
    def subgraph(self) -> Subgraph:
        """The subgraph as data: its tensors, its nodes and the order in which they run."""
        return self._runtime.subgraphs[self.index]

    @property
    def context(self) -> Context:
        """The context (interface of the runtime) that the kernels of this subgraph's nodes get."""
        return self._runtime.executors[self.index].context

    def resize(self, tensor: int, shape: tuple[int, ...]) -> None:
        """Give an input another shape; `allocate` is needed before the next `invoke`.

        Args:
            tensor: the input's index.
            shape: its new shape.

        Raises:
            TensorError: there is no such subgraph (a ValueError).
            OpletError: the tensor is no input, or cannot have this shape.
        """
        self._runtime.resize(tensor, shape, self.index)

    def allocate(self) -> None:
        """Prepare the subgraph for its inputs' shapes and give every tensor its memory; nothing happens if it is ready.

        Raises:
            OpletError: an op has no kernel, a kernel refuses its node, or there is not enough memory.
        """
        self._runtime.allocate(self.index)

    def set(self, tensor: int, value: Any) -> None:
        """Copy a value into a tensor.

        Args:
            tensor: the tensor's index.
            value: an array of exactly its dtype and shape.

        Raises:
            TensorError: the index, dtype or shape is wrong, or the tensor has no memory yet (a ValueError).
        """
        self._runtime.set_value(tensor, value, self.index)

    def invoke(self) -> None:
        """Run the subgraph.

        Raises:
            OpletError: `allocate` was not called, a kernel failed, or the run exceeded a limit.
        """
        self._runtime.invoke(self.index)

    def tensor(self, tensor: int) -> Tensor:
        """Return a tensor whose `data` is up to date, copied from a delegate's buffer if need be; the next run changes it.

        Args:
            tensor: the tensor's index.

        Raises:
            TensorError: there is no such tensor, or it has no memory yet (a ValueError).
            DelegateError: the delegate cannot copy the value.
        """
        return self._runtime.readable(tensor, self.index)

    def use_memory(self, arrays: Mapping[int, NDArray[Any] | None]) -> Collection[int]:
        """Use arrays of the application as the memory of inputs and outputs, which runs then read and write without copies.

        It lasts until the subgraph is prepared again, as by `allocate` after a resize, which changes `Subgraph.generation`. If a run cannot
        write an output into its array, `Tensor.data` of the output is another array afterwards. An output's array must not overlap any
        other.

        Args:
            arrays: by the index of an input or output, a contiguous and writeable array of its dtype and shape; None for the runtime's own
                memory, to which the tensor's value is copied. An input and an output may have the same array where `can_overwrite` says so.

        Returns:
            The indices of the tensors that use the requested memory. Not moved are constants, variables, strings, tensors that a delegate's
            kernel reads or writes, and all tensors of a subgraph that has dynamic shapes, is called by nodes, or is not allocated.

        Raises:
            StateError: another thread is using the interpreter.
            PrepareError: a kernel cannot be bound to the arrays; call `allocate`.
        """
        return self._runtime.exchange_memory(arrays, self.index)

    def can_overwrite(self, input: int, output: int) -> bool:
        """Return whether one array may be both an input and an output (see `use_memory`), as for a language model's caches.

        This needs the node that writes the output to run after all that read the input, or to write over it (see `Node.in_place`).

        Args:
            input: the input's index.
            output: the output's index.
        """
        subgraph = self.subgraph
        source, target = subgraph.tensors[input], subgraph.tensors[output]
        running = [(node, (node, *node.absorbed)) for segment in subgraph.segments for node in segment.nodes]
        users = [(node, sum(each.inputs.count(source) for each in parts)) for node, parts in running]
        users = [(node, reads) for node, reads in users if reads or target in node.outputs]
        if input not in subgraph.inputs or input in subgraph.read or source.nbytes != target.nbytes or not users:
            return False
        writer, reads = users[-1]
        if target not in writer.outputs or any(node.delegate is not None for node, _ in users):
            return False
        return not reads or (reads == 1 and source in writer.in_place and writer.outputs[0] is target)

    def details(self, tensor: int) -> dict[str, Any]:
        """Return a tensor's details, as `Interpreter.get_tensor_details` does.

        Args:
            tensor: the tensor's index.

        Raises:
            TensorError: there is no such tensor (a ValueError).
        """
        return self._interpreter._get_tensor_details(tensor, self.index)

    @property
    def backend(self) -> Backend | None:
        """The asynchronous backend of the subgraph, None without one. While it is busy, changes of the interpreter raise an error."""
        return self._runtime.backends.get(self.index)

    @backend.setter
    def backend(self, backend: Backend) -> None:
        self._runtime.backends[self.index] = backend

    def bind_alone(self, node: Node) -> None:
        """Bind the kernel of the subgraph's only node to the arrays that its tensors have now, for the next `invoke`.

        Args:
            node: the node; its kernel's `prepare` was called.

        Raises:
            PrepareError: the kernel's `bind` fails.
        """
        from oplet.runtime.execution.binding import bind_node

        [segment] = self.subgraph.segments
        segment.thunks[:] = [bind_node(self._runtime.executors[self.index].context, node)]
        segment.unjoin()


def inline_composites(interpreter: Interpreter, alike: Interpreter | None = None) -> None:
    """Inline (replace by their decompositions' nodes) the composites that no kernel computes as a whole, whatever their shapes.

    Args:
        interpreter: the interpreter that is changed; it has no delegates.
        alike: an interpreter of the same model, with delegates: the composites that it has inlined, in place of those above.
    """
    from oplet.runtime.delegation.inlining import inline_composites

    executors = interpreter._runtime.executors
    inline_composites(executors, [None] * len(executors) if alike is None else alike.subgraphs)


def unshare_plan(interpreter: Interpreter) -> None:
    """Exclude an interpreter's prepared plan from the cache that interpreters of a model share, so that a test may change it.

    Args:
        interpreter: the interpreter.
    """
    interpreter._runtime.loaded.part()


def prepare_claimed(outside: Context, inside: Context, node: Node) -> None:
    """Prepare a node that a delegate has claimed, with the first kernel in precedence that does not decline it.

    Args:
        outside: the runtime's context, which the delegate's kernel gets.
        inside: the context that the node's own kernel gets.
        node: the node.

    Raises:
        StateError: `outside` is another context than the runtime's, or nothing serves the node.
        PrepareError: the node's kernel refuses it, or all kernels for the op decline it.
    """
    from oplet.ops.ensure import Declined
    from oplet.runtime.execution.fallback import fall_back, initialize_provider, restart
    from oplet.runtime.execution.kernel_context import KernelContext

    if not isinstance(outside, KernelContext):
        raise StateError(f"{node} is prepared in the runtime's own context, not in a {type(outside).__name__}.")
    restart(outside, node)
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
    """Set a tensor's shape and allocate memory for it, unless it already has that shape and writeable memory.

    Args:
        tensor: a tensor inside of a delegate's partition, or an output of the partition whose shape is dynamic.
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
