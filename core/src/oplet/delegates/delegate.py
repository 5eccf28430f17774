"""What a delegate is: it looks at the graph, claims nodes, and brings the kernels that run them.

Contract: tflite/core/c/common.h (TfLiteDelegate) and tflite/delegates/utils/simple_delegate.h of google-ai-edge/LiteRT.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Flag
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from oplet.delegates.partition import NodeSubset
from oplet.errors import DelegateError, failures
from oplet.ops.context import Context, Node
from oplet.ops.serving.registration import Provenance, Registration, Thunk
from oplet.ops.tensor import Tensor
from oplet.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.ops.asynchronous.kernel import AsyncKernel

__all__ = [
    "Delegate",
    "DelegateContext",
    "DelegateFlags",
    "DelegateKernel",
    "DelegateParams",
    "SimpleDelegate",
    "kernel_registration",
    "largest_partitions",
]


class DelegateFlags(Flag):
    """What a delegate can do, with LiteRT's numbers."""

    NONE = 0
    ALLOW_DYNAMIC_TENSORS = 1
    REQUIRE_PROPAGATED_SHAPES = 2
    PER_OPERATOR_PROFILING = 4
    HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE = 8


class DelegateParams(NamedTuple):
    """What a delegate's kernel is initialized with: the partition that it replaces.

    Attributes:
        delegate: the delegate.
        nodes: the nodes that the kernel replaces, in the order in which to run them.
        input_tensors: what they read from outside, constants included.
        output_tensors: what others read from them.
    """

    delegate: Delegate
    nodes: list[Node]
    input_tensors: list[Tensor]
    output_tensors: list[Tensor]


class DelegateContext:
    """One subgraph as a delegate's `prepare` sees it: all that delegates may do; the runtime implements it.

    It is good while `prepare` runs: afterwards its methods raise a DelegateError. What kernels may do, they do with the `Context` that
    they are given.
    """

    #: Threads that a kernel may use.
    num_threads: int = 1

    @property
    def model(self) -> Model:
        """The model as it is in the file, for delegates that write parts of it for an engine of their own.

        A node's or tensor's `index` is its place in the tables, `model.root.subgraphs[subgraph_index]`; constants are
        `model.tensor_bytes(table)`. Shapes there are those of the file: what holds now is `Tensor.shape`.
        """
        raise NotImplementedError

    @property
    def subgraph_index(self) -> int:
        """The subgraph's number in the model; 0 is the one that `invoke` runs."""
        raise NotImplementedError

    @property
    def num_subgraphs(self) -> int:
        """How many subgraphs the model has."""
        raise NotImplementedError

    @property
    def inputs(self) -> list[int]:
        """Indices of the tensors that the caller feeds."""
        raise NotImplementedError

    @property
    def outputs(self) -> list[int]:
        """Indices of the tensors that the caller reads."""
        raise NotImplementedError

    @property
    def execution_plan(self) -> list[int]:
        """Indices of the nodes to run, in order; the caller's to keep."""
        raise NotImplementedError

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph."""
        raise NotImplementedError

    def node(self, index: int) -> Node:
        """The node of that index, with its registration."""
        raise NotImplementedError

    def metadata(self, name: str) -> bytes | None:
        """A metadata entry of the model, None if it has none of that name."""
        raise NotImplementedError

    def preview_delegate_partitioning(self, nodes: Collection[int]) -> list[NodeSubset]:
        """The subsets that claiming `nodes` would give, in the order in which they run; nothing changes."""
        raise NotImplementedError

    def replace_node_subsets_with_delegate_kernels(self, registration: Registration, nodes: Collection[int]) -> None:
        """Replace the claimed nodes by one node per partition, served by `registration`.

        Args:
            registration: its `init` is called with a `DelegateParams`.
            nodes: indices of the claimed nodes; none is fine and changes nothing.

        Raises:
            DelegateError: another delegate owns one of their outputs, or an index does not exist.
        """
        raise NotImplementedError

    @property
    def max_seconds(self) -> float | None:
        """How long one invoke may take (`Limits.max_seconds`), None for any time: native code that nobody can stop should not get
        work that takes much longer."""
        raise NotImplementedError

    def charge(self, nbytes: int) -> None:
        """Refuse memory that the limits do not allow, before an engine takes it for nodes; `oplet.charge` in the kernel's `prepare`
        counts it.

        Raises:
            LimitError: the model may not take so much besides what it has; claim less.
        """
        raise NotImplementedError

    def report_unsupported(self, node: int, reason: str) -> None:
        """Keep, for reports, why a node is not claimed."""
        raise NotImplementedError

    def subgraph_context(self, index: int) -> DelegateContext:
        """The same view of another subgraph, for delegates that run control flow with the bodies that it calls.

        Raises:
            DelegateError: there is no such subgraph.
        """
        raise NotImplementedError

    def mark_subgraph_as_delegation_skippable(self, index: int) -> None:
        """Say that this delegate has taken a subgraph into a kernel of its caller, so that it is not asked about it again.

        Raises:
            DelegateError: there is no such subgraph, or it is the first, which always runs.
        """
        raise NotImplementedError


class Delegate:
    """Base of all delegates.

    Attributes:
        name: what reports call it.
        flags: what it can do.
        options: what the user gave, all as strings, as LiteRT's `load_delegate` passes them.
        provenance: which package brought it; `load_delegate` fills it in.
        constants_first: whether nodes that it leaves alone and that read only constants of the file go before all others, so that
            weights that they widen do not cut a partition in two. LiteRT knows no such order, and it is not the default.

    A delegate that keeps values in buffers of its own sets, in its kernel's invoke, `tensor.buffer_handle` and
    `tensor.data_is_stale` of an output; the runtime calls `copy_from_buffer_handle` when somebody else reads it.
    """

    name: str = "Delegate"
    flags: DelegateFlags = DelegateFlags.NONE
    constants_first: bool = False
    provenance: Provenance = Provenance()

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = {str(key): str(value) for key, value in (options or {}).items()}

    @property
    def profiles_operators(self) -> bool:
        """Whether its kernels tell the profiler of each operator, so that the runtime need not tell of the whole."""
        return DelegateFlags.PER_OPERATOR_PROFILING in self.flags

    @property
    def allows_dynamic_tensors(self) -> bool:
        """Whether its kernels cope with shapes that are known only while invoking, and with resizes."""
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS in self.flags

    def prepare(self, context: DelegateContext) -> None:
        """Claim nodes with `context.replace_node_subsets_with_delegate_kernels`; raising leaves the graph as it was.

        It runs again when a resize undid what it had claimed.
        """
        raise NotImplementedError

    def copy_from_buffer_handle(self, context: Context, handle: Any, tensor: Tensor) -> None:
        """Write what a buffer holds into `tensor.data`. Delegates that hand out buffer handles must have it."""
        raise DelegateError(f"{self.name} cannot copy the data of {tensor} from its buffer {handle!r}.")

    def copy_to_buffer_handle(self, context: Context, handle: Any, tensor: Tensor) -> None:
        """Write `tensor.data` into a buffer; optional."""
        raise DelegateError(f"{self.name} cannot copy the data of {tensor} to its buffer {handle!r}.")

    def free_buffer_handle(self, context: Context, handle: Any) -> None:
        """Let go of a buffer; nobody will ask for it again."""


class DelegateKernel:
    """One partition of a `SimpleDelegate`; made by `create_kernel`, freed when the interpreter goes or the graph is undone."""

    def init(self, context: Context, params: DelegateParams) -> None:
        """Get ready to run the partition; whatever does not depend on shapes is done here, once."""

    def prepare(self, context: Context, node: Node) -> None:
        """Check shapes, set the outputs' shapes, ask for temporaries; whenever inputs were resized."""

    def bind(self, context: Context, node: Node) -> Thunk:
        """Return the function that runs the partition; the tensors have their memory now. `invoke` unless overridden."""
        return partial(self.invoke, context, node)

    def invoke(self, context: Context, node: Node) -> None:
        """Run the partition, looking everything up each time; a kernel has this or `bind`."""
        raise NotImplementedError(f"{type(self).__name__} has neither bind nor invoke")

    def free(self, context: Context) -> None:
        """Let go of what `init` took; called once for each kernel, also after a failure."""

    def async_kernel(self, context: Context, node: Node) -> AsyncKernel | None:
        """Return what runs the partition asynchronously, None if nothing does.

        `return ThreadedAsyncKernel(self.bind)` runs it as it is, in a thread.
        """
        return None


class SimpleDelegate(Delegate):
    """The common case: say node by node what is supported, and make a kernel for each partition.

    Attributes:
        max_delegated_partitions: take at most so many partitions, the largest, of equal ones the first; 0 for all.
        min_nodes_per_partition: leave smaller partitions alone.
        first_delegate_node_index: leave nodes before it alone, to find the one that goes wrong.
        last_delegate_node_index: leave nodes behind it alone.
        float16_constants: offer nodes their float16 constants themselves, in place of the outputs of the DEQUANTIZE
            nodes that widen them, as LiteRT's delegates with float16 kernels want them.
    """

    max_delegated_partitions: int = 0
    min_nodes_per_partition: int = 0
    first_delegate_node_index: int = 0
    last_delegate_node_index: int = 2**31 - 1
    float16_constants: bool = False

    def initialize(self, context: DelegateContext) -> None:
        """Look at a subgraph before its nodes are asked about; raising refuses the whole delegation."""

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        """Whether the delegate can run the node: True, or False, or the reason why not."""
        raise NotImplementedError

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        """Make the kernel that runs one partition."""
        raise NotImplementedError

    def prepare(self, context: DelegateContext) -> None:
        self.initialize(context)
        nodes = [context.node(index) for index in context.execution_plan]
        narrow = _float16_constants(nodes) if self.float16_constants else {}
        widening = [node for node in nodes if node.outputs and node.outputs[0] in narrow]
        refused: dict[int, str] = {}
        claimed = []
        for node in nodes:
            if node.op is BuiltinOperator.DELEGATE or node in widening:
                continue
            wide, node.inputs = node.inputs, [narrow.get(tensor, tensor) for tensor in node.inputs]
            answer = self._answer(context, node)
            node.inputs = wide
            if answer is True:
                claimed.append(node.index)
            else:
                refused[node.index] = answer if isinstance(answer, str) else "not supported"
        if widening and len(claimed) + len(widening) == len(nodes):
            taken = context.execution_plan  # nobody is left who would read the widened constants
        else:
            partitions = [subset for subset in context.preview_delegate_partitioning(claimed) if subset.claimed]
            taken = [index for subset in self._choose(partitions, refused) for index in subset.nodes]
        for index, reason in refused.items():
            context.report_unsupported(index, reason)
        for index in taken if narrow else ():
            node = context.node(index)
            if node not in widening:
                node.inputs = [narrow.get(tensor, tensor) for tensor in node.inputs]
        context.replace_node_subsets_with_delegate_kernels(kernel_registration(self.name, self.create_kernel), taken)

    def _answer(self, context: DelegateContext, node: Node) -> bool | str:
        if not self.first_delegate_node_index <= node.index <= self.last_delegate_node_index:
            return f"it is not among the nodes {self.first_delegate_node_index} to {self.last_delegate_node_index}"
        return self.is_node_supported(context, node)

    def _choose(self, partitions: Sequence[NodeSubset], refused: dict[int, str]) -> list[NodeSubset]:
        kept = largest_partitions(partitions, self.min_nodes_per_partition, max(self.max_delegated_partitions, 0))
        for subset in partitions:
            if subset not in kept:
                reason = (
                    f"its partition of {len(subset.nodes)} nodes is left out (min_nodes_per_partition="
                    f"{self.min_nodes_per_partition}, max_delegated_partitions={self.max_delegated_partitions})"
                )
                refused.update(dict.fromkeys(subset.nodes, reason))
        return kept


def kernel_registration(name: str, create_kernel: Callable[[DelegateParams], DelegateKernel]) -> Registration:
    """What to replace claimed nodes by, for delegates that claim on their own; `SimpleDelegate` does it by itself.

    Args:
        name: of the delegate.
        create_kernel: makes the kernel that runs one partition.
    """

    def init(context: Context, params: DelegateParams) -> DelegateKernel:
        kernel = create_kernel(params)
        try:
            kernel.init(context, params)
        except BaseException:
            try:
                kernel.free(context)
            except failures():  # what went wrong first is what there is to tell
                pass
            raise
        return kernel

    return Registration(
        builtin_code=BuiltinOperator.DELEGATE,
        custom_name=name,
        init=init,
        free=lambda context, kernel: kernel.free(context),
        prepare=lambda context, node: node.user_data.prepare(context, node),
        bind=lambda context, node: node.user_data.bind(context, node),
        async_kernel=lambda context, node: node.user_data.async_kernel(context, node),
    )


def largest_partitions(partitions: Iterable[NodeSubset], least_nodes: int, most: int) -> list[NodeSubset]:
    """The partitions of at least so many nodes; of these at most so many, the largest, of equal ones the first.

    Args:
        most: how many; 0 for all.
    """
    kept = [subset for subset in partitions if len(subset.nodes) >= least_nodes]
    return sorted(kept, key=lambda subset: -len(subset.nodes))[:most] if most else kept


def _float16_constants(nodes: Sequence[Node]) -> dict[Tensor, Tensor]:
    """The float16 constant behind each tensor that a DEQUANTIZE node widens it to."""
    return {
        node.outputs[0]: node.inputs[0]
        for node in nodes
        if node.op is BuiltinOperator.DEQUANTIZE
        and node.has_input(0)
        and len(node.outputs) == 1
        and node.inputs[0].type is TensorType.FLOAT16
        and node.inputs[0].is_constant
    }
