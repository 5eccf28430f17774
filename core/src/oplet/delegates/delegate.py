"""Base classes of delegates, which claim nodes of a graph and provide the kernels that run them.

Contract: tflite/core/c/common.h (TfLiteDelegate) and tflite/delegates/utils/simple_delegate.h of google-ai-edge/LiteRT.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from enum import Flag
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from oplet.delegates.partition import NodeSubset, largest_partitions
from oplet.errors import DelegateError, failures
from oplet.ops.context import Context, Node
from oplet.ops.serving.registration import Provenance, Registration, Thunk
from oplet.ops.tensor import Tensor
from oplet.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from oplet.model.model import Model

__all__ = [
    "Delegate",
    "DelegateContext",
    "DelegateFlags",
    "DelegateKernel",
    "DelegateParams",
    "SimpleDelegate",
    "kernel_registration",
]


class DelegateFlags(Flag):
    """Capabilities of a delegate, with LiteRT's numbers."""

    NONE = 0
    ALLOW_DYNAMIC_TENSORS = 1
    REQUIRE_PROPAGATED_SHAPES = 2
    PER_OPERATOR_PROFILING = 4
    HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE = 8


class DelegateParams(NamedTuple):
    """The partition that a delegate's kernel replaces; the argument of its `init`.

    Attributes:
        delegate: the delegate.
        nodes: the nodes that the kernel replaces, in the order in which to run them.
        input_tensors: the tensors that these nodes read from outside of the partition, including constants.
        output_tensors: the tensors written by these nodes that other nodes, or the caller, read.
    """

    delegate: Delegate
    nodes: list[Node]
    input_tensors: list[Tensor]
    output_tensors: list[Tensor]


class DelegateContext:
    """Interface of a subgraph for a delegate's `prepare`: shows the graph, and lets it claim nodes. The runtime implements it.

    It is valid while `prepare` runs; afterwards its methods raise DelegateError. The delegate's kernels get a `Context` of their own.
    """

    num_threads: int = 1  #: Number of threads that a kernel may use.
    checkpoint_folder: str | None = None  #: The folder that the model may save and restore variables in; None for nowhere.

    @property
    def model(self) -> Model:
        """The model as in the file, for delegates that export parts of it to an engine.

        The `index` of a node or tensor is its index in the tables, `model.root.subgraphs[subgraph_index]`; `model.tensor_bytes(table)`
        returns constants, but what a node writes may have bytes, too. Shapes in the tables are those of the file; `Tensor.shape` is
        the present one. What was inlined from the decompositions of composites has tables behind those of the file.
        """
        raise NotImplementedError

    @property
    def subgraph_index(self) -> int:
        """The index of the subgraph in the model; 0 is the one that `invoke` runs."""
        raise NotImplementedError

    @property
    def num_subgraphs(self) -> int:
        """The number of subgraphs of the model."""
        raise NotImplementedError

    @property
    def inputs(self) -> list[int]:
        """Indices of the subgraph's inputs, which the application or a calling node writes."""
        raise NotImplementedError

    @property
    def outputs(self) -> list[int]:
        """Indices of the subgraph's outputs, which the application or a calling node reads."""
        raise NotImplementedError

    @property
    def execution_plan(self) -> list[int]:
        """Indices of the nodes to run, in order; a copy."""
        raise NotImplementedError

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, by index."""
        raise NotImplementedError

    def node(self, index: int) -> Node:
        """Return a node of the subgraph by its index; its `registration`, the kernel that would serve it, was looked up."""
        raise NotImplementedError

    def metadata(self, name: str) -> bytes | None:
        """Return the bytes of a metadata entry of the model; None if there is no entry of that name."""
        raise NotImplementedError

    def preview_delegate_partitioning(self, nodes: Collection[int]) -> list[NodeSubset]:
        """Return the partitions, in execution order, that claiming `nodes` would give; nothing changes."""
        raise NotImplementedError

    def replace_node_subsets_with_delegate_kernels(self, registration: Registration, nodes: Collection[int]) -> None:
        """Replace the claimed nodes by one node per partition, served by `registration`.

        Args:
            registration: its `init` is called with a `DelegateParams`.
            nodes: indices of the claimed nodes; an empty collection changes nothing.

        Raises:
            DelegateError: another delegate owns one of their outputs, or an index does not exist.
        """
        raise NotImplementedError

    @property
    def max_seconds(self) -> float | None:
        """The time in seconds that a run may take (`Limits.max_seconds`), None for no limit.

        Native code cannot be interrupted, so a delegate should not claim work that takes much longer.
        """
        raise NotImplementedError

    def charge(self, nbytes: int) -> None:
        """Check against the limits the memory that an engine would allocate for nodes, before it does.

        The memory is not counted here; call `oplet.charge` in the kernel's `prepare` for that.

        Args:
            nbytes: number of bytes.

        Raises:
            LimitError: the memory exceeds the limit; claim fewer nodes.
        """
        raise NotImplementedError

    def report_unsupported(self, node: int, reason: str) -> None:
        """Record the reason why a node is not claimed, for reports."""
        raise NotImplementedError

    def subgraph_context(self, index: int) -> DelegateContext:
        """Return the context of another subgraph, for delegates that run control flow together with the subgraphs that it calls.

        Raises:
            DelegateError: there is no such subgraph.
        """
        raise NotImplementedError

    def mark_subgraph_as_delegation_skippable(self, index: int) -> None:
        """Declare that a kernel of this delegate runs a subgraph as part of its caller; `prepare` is then not called for the subgraph.

        Raises:
            DelegateError: there is no such subgraph, or it is the first, which always runs.
        """
        raise NotImplementedError


class Delegate:
    """Base of all delegates.

    Attributes:
        name: its name in reports.
        flags: its capabilities.
        options: the user's options, all as strings, as LiteRT's `load_delegate` passes them.
        provenance: the package that it comes from; `load_delegate` fills it in.
        constants_first: whether nodes that it does not claim, and that read only constants of the file, run before all others, so
            that nodes which widen weights do not split partitions. LiteRT has no such order; the default is False.
        only_nodes: indices of the main subgraph's nodes that it may claim; None for all. Others are shown as claimed already.

    A delegate that keeps values in buffers of its own sets `tensor.buffer_handle` and `tensor.data_is_stale` of an output when its kernel
    runs; the runtime calls `copy_from_buffer_handle` before anything else reads the tensor.
    """

    name: str = "Delegate"
    flags: DelegateFlags = DelegateFlags.NONE
    constants_first: bool = False
    only_nodes: Container[int] | None = None
    provenance: Provenance = Provenance()

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = {str(key): str(value) for key, value in (options or {}).items()}

    @property
    def profiles_operators(self) -> bool:
        """Whether the delegate's kernels report each operator to the profiler; otherwise the runtime reports whole partitions."""
        return DelegateFlags.PER_OPERATOR_PROFILING in self.flags

    @property
    def allows_dynamic_tensors(self) -> bool:
        """Whether the delegate's kernels support shapes that are known only at run time, and resizes."""
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS in self.flags

    def prepare(self, context: DelegateContext) -> None:
        """Claim nodes with `context.replace_node_subsets_with_delegate_kernels`. If this raises, the graph is restored.

        It is called again after a resize that undid the delegation.
        """
        raise NotImplementedError

    def wanted_composites(self, context: DelegateContext, composites: Sequence[Node]) -> Collection[Node] | None:
        """Return the composites that the delegate would claim as a whole; others are inlined (replaced by their decompositions' nodes).

        Called before `prepare`. None (the default) lets `prepare` decide: composites that it leaves are inlined, and `prepare` is called
        again.
        """
        return None

    def copy_from_buffer_handle(self, context: Context, handle: Any, tensor: Tensor) -> None:
        """Copy the delegate's buffer `handle` to `tensor.data`. Required of delegates that set buffer handles."""
        raise DelegateError(f"{self.name} cannot copy the data of {tensor} from its buffer {handle!r}.")

    def copy_to_buffer_handle(self, context: Context, handle: Any, tensor: Tensor) -> None:
        """Copy `tensor.data` to the delegate's buffer `handle`; optional."""
        raise DelegateError(f"{self.name} cannot copy the data of {tensor} to its buffer {handle!r}.")

    def free_buffer_handle(self, context: Context, handle: Any) -> None:
        """Free the delegate's buffer `handle`, which is not used again."""


class DelegateKernel:
    """The kernel of one partition of a `SimpleDelegate`, which `create_kernel` makes.

    It is freed when the interpreter closes or the delegation is undone.
    """

    def init(self, context: Context, params: DelegateParams) -> None:
        """Initialize the kernel, once, with everything that does not depend on shapes."""

    def prepare(self, context: Context, node: Node) -> None:
        """Check shapes, set the outputs' shapes and request temporaries; called whenever inputs were resized."""

    def bind(self, context: Context, node: Node) -> Thunk:
        """Return the function without arguments that runs the partition, once memory is allocated; the default calls `invoke`."""
        return partial(self.invoke, context, node)

    def invoke(self, context: Context, node: Node) -> None:
        """Run the partition, for kernels that do not override `bind`."""
        raise NotImplementedError(f"{type(self).__name__} has neither bind nor invoke")

    def free(self, context: Context) -> None:
        """Free what `init` allocated; called once for each kernel, also after a failure."""

    def async_kernel(self, context: Context, node: Node) -> object | None:
        """Return the asynchronous form of the kernel, an `AsyncKernel`; None if there is none.

        `return ThreadedAsyncKernel(self.bind)` runs the kernel in a thread.
        """
        return None


class SimpleDelegate(Delegate):
    """Base of delegates that decide node by node what they support, and make a kernel for each partition.

    Attributes:
        max_delegated_partitions: the most partitions to take, the largest first, of equal ones the earlier; 0 for all.
        min_nodes_per_partition: the least number of nodes of a partition to take.
        first_delegate_node_index: the first node to take; with the next attribute, to find a node that fails by bisection.
        last_delegate_node_index: the last node to take.
        float16_constants: whether nodes get float16 constants as inputs, without the DEQUANTIZE nodes that widen them.
    """

    max_delegated_partitions: int = 0
    min_nodes_per_partition: int = 0
    first_delegate_node_index: int = 0
    last_delegate_node_index: int = 2**31 - 1
    float16_constants: bool = False

    def initialize(self, context: DelegateContext) -> None:
        """Inspect a subgraph before `is_node_supported` is called for its nodes. If it raises, nothing is delegated."""

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        """Return whether the delegate can run the node: True, False, or the reason why not."""
        raise NotImplementedError

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        """Create the kernel that runs one partition."""
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
            taken = context.execution_plan  # no node is left that reads the widened constants
        else:
            partitions = [subset for subset in context.preview_delegate_partitioning(claimed) if subset.claimed]
            least, most = self.min_nodes_per_partition, max(self.max_delegated_partitions, 0)
            names = "min_nodes_per_partition", "max_delegated_partitions"
            taken = [i for subset in largest_partitions(partitions, least, most, refused, names) for i in subset.nodes]
        for index, reason in refused.items():
            context.report_unsupported(index, reason)
        for index in taken if narrow else ():
            node = context.node(index)
            if node not in widening:
                node.inputs = [narrow.get(tensor, tensor) for tensor in node.inputs]
        context.replace_node_subsets_with_delegate_kernels(kernel_registration(self.name, self.create_kernel), taken)

    def wanted_composites(self, context: DelegateContext, composites: Sequence[Node]) -> Collection[Node] | None:
        self.initialize(context)
        return [node for node in composites if self._answer(context, node) is True]

    def _answer(self, context: DelegateContext, node: Node) -> bool | str:
        if not self.first_delegate_node_index <= node.index <= self.last_delegate_node_index:
            return f"it is not among the nodes {self.first_delegate_node_index} to {self.last_delegate_node_index}"
        return self.is_node_supported(context, node)


def kernel_registration(name: str, create_kernel: Callable[[DelegateParams], DelegateKernel]) -> Registration:
    """Return a registration whose kernels `create_kernel` makes, for delegates that claim nodes without `SimpleDelegate`.

    Args:
        name: the delegate's name.
        create_kernel: creates the kernel that runs one partition.
    """

    def init(context: Context, params: DelegateParams) -> DelegateKernel:
        kernel = create_kernel(params)
        try:
            kernel.init(context, params)
        except BaseException:
            try:
                kernel.free(context)
            except failures():  # the first failure is the one that is reported
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


def _float16_constants(nodes: Sequence[Node]) -> dict[Tensor, Tensor]:
    """Map the output of each DEQUANTIZE node that widens a float16 constant to that constant."""
    return {
        node.outputs[0]: node.inputs[0]
        for node in nodes
        if node.op is BuiltinOperator.DEQUANTIZE
        and len(node.outputs) == 1
        and node.has_input(0)
        and node.inputs[0].type is TensorType.FLOAT16
        and node.inputs[0].sparsity is None
        and node.inputs[0].is_constant
    }
