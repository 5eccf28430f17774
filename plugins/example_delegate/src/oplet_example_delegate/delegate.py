"""MyDelegate: which nodes it takes, and the kernel that runs a partition of them."""

from __future__ import annotations

from collections.abc import Callable

from oplet import (
    AsyncKernel,
    BuiltinOperator,
    Context,
    DelegateKernel,
    DelegateParams,
    Node,
    SimpleDelegate,
    TensorType,
    ThreadedAsyncKernel,
)
from oplet.delegates.delegate import DelegateContext
from oplet_example_delegate import conv_2d, mean

#: The highest version of each operator whose features the code here knows: what a later one adds, it would ignore.
MAX_VERSIONS = {BuiltinOperator.CONV_2D: 1, BuiltinOperator.MEAN: 1}

_COMPUTE = {BuiltinOperator.CONV_2D: conv_2d, BuiltinOperator.MEAN: mean}


class MyDelegate(SimpleDelegate):
    """Claims CONV_2D and MEAN nodes on float32 tensors.

    Options: `min_nodes` (leave smaller partitions alone) and `max_partitions` (take at most so many, the largest).
    """

    name = "MyDelegate"

    def __init__(self, options: dict[str, str] | None = None) -> None:
        super().__init__(options)
        self.min_nodes_per_partition = int(self.options.get("min_nodes", 0))
        self.max_delegated_partitions = int(self.options.get("max_partitions", 0))

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        newest = MAX_VERSIONS.get(node.op)
        if newest is None:
            return f"{node.op_name} is none of its operators"
        if node.version > newest:
            return f"{node.op_name} is of version {node.version}, it knows up to {newest}"
        if any(tensor.type is not TensorType.FLOAT32 for tensor in (node.inputs[0], *node.outputs)):
            return f"it works on FLOAT32, not {node.inputs[0].type.name}"
        return _COMPUTE[node.op].refuses(node) or True

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return MyKernel(params)


class MyKernel(DelegateKernel):
    """Runs the nodes of one partition, one after the other."""

    def __init__(self, params: DelegateParams) -> None:
        self.nodes = params.nodes
        outside = {tensor.index for tensor in params.output_tensors}
        self.inner = [t for node in params.nodes for t in node.outputs if t.index not in outside]

    def prepare(self, context: Context, node: Node) -> None:
        for claimed in self.nodes:
            context.resize_tensor(claimed.outputs[0], _COMPUTE[claimed.op].output_shape(claimed))
        self.scratch = [context.add_temporary(node, tensor.shape) for tensor in self.inner]

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        # The runtime gives memory to what crosses the partition's border; values inside live in temporaries.
        for tensor, scratch in zip(self.inner, self.scratch):
            tensor.data = scratch.data
        steps = [_COMPUTE[claimed.op].bind(claimed) for claimed in self.nodes]

        def run() -> None:
            for step in steps:
                step()

        return run

    def async_kernel(self, context: Context, node: Node) -> AsyncKernel:
        return ThreadedAsyncKernel(self.bind)
