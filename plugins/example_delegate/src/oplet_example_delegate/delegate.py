"""MyDelegate, which decides which nodes to claim, and the kernel that runs a partition of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from oplet import (
    BuiltinOperator,
    Context,
    DelegateContext,
    DelegateFlags,
    DelegateKernel,
    DelegateParams,
    Node,
    SimpleDelegate,
    TensorType,
)
from oplet_example_delegate import conv_2d, mean

if TYPE_CHECKING:
    from oplet import AsyncKernel

#: The highest version of each operator whose features the code here knows: what a later one adds, it would ignore.
MAX_VERSIONS = {BuiltinOperator.CONV_2D: 1, BuiltinOperator.MEAN: 1}

_COMPUTE = {BuiltinOperator.CONV_2D: conv_2d, BuiltinOperator.MEAN: mean}
_OPTIONS = ("min_nodes", "max_partitions")


class MyDelegate(SimpleDelegate):
    """Claims CONV_2D and MEAN nodes on float32 tensors.

    Options: `min_nodes` (smaller partitions are left to other kernels) and `max_partitions` (the most partitions to run, the
    largest first).
    """

    name = "example"
    #: Shapes must be known before anything runs; a resize undoes the delegate and asks it again.
    flags = DelegateFlags.NONE

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        for key, value in self.options.items():
            if key not in _OPTIONS or not value.isdecimal():
                raise ValueError(f"'{key}={value}' is none of its options: {', '.join(_OPTIONS)}, each with a number.")
        self.min_nodes_per_partition = int(self.options.get("min_nodes", 0))
        self.max_delegated_partitions = int(self.options.get("max_partitions", 0))

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        newest = MAX_VERSIONS.get(node.op)
        if newest is None:
            return f"{node.op_name} is none of its operators"
        if node.version > newest:
            return f"{node.op_name} is of version {node.version}, it knows up to {newest}"
        for tensor in (node.inputs[0], *node.outputs):
            if tensor.type is not TensorType.FLOAT32:
                return f"it works on FLOAT32, not {tensor.type.name}"
        return _COMPUTE[node.op].refuses(node) or True

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return MyKernel()


class MyKernel(DelegateKernel):
    """Runs the nodes of one partition, one after the other."""

    def init(self, context: Context, params: DelegateParams) -> None:
        self.nodes = params.nodes
        made = [node.outputs[0] for node in params.nodes]
        self.inner = [tensor for tensor in made if tensor not in params.output_tensors]

    def prepare(self, context: Context, node: Node) -> None:
        for claimed in self.nodes:
            context.resize_tensor(claimed.outputs[0], _COMPUTE[claimed.op].output_shape(claimed))
        # The runtime gives memory to what crosses the partition's border; values inside are the kernel's own.
        self.scratch = {tensor: context.add_temporary(node, tensor.shape) for tensor in self.inner}

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        steps = []
        for claimed in self.nodes:
            data, out = (self.scratch.get(tensor, tensor).data for tensor in (claimed.inputs[0], claimed.outputs[0]))
            steps.append(_COMPUTE[claimed.op].bind(claimed, data, out))

        def run() -> None:
            for step in steps:
                step()

        return run

    def async_kernel(self, context: Context, node: Node) -> AsyncKernel:
        from oplet import ThreadedAsyncKernel  # of oplet-predictor, which runs models asynchronously

        return ThreadedAsyncKernel(self.bind)
