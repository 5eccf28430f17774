"""What runs a partition: one OpenVINO request whose tensors are the runtime's own memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from oplet import AsyncKernel, Context, DelegateKernel, DelegateParams, Node, ThreadedAsyncKernel
from oplet.errors import DelegateApplicationError
from oplet_openvino_delegate.graph import Untranslatable
from oplet_openvino_delegate.partition import Compile, Partition, array_tensor, compile_partition, key_of


class PartitionKernel(DelegateKernel):
    """Runs one partition.

    Args:
        partition: what was compiled to see whether it can be; it serves until a shape changes.
        compile: compiles a graph for the delegate's device.
    """

    def __init__(self, partition: Partition | None, compile: Compile) -> None:
        self.partition = partition
        self.compile = compile

    def init(self, context: Context, params: DelegateParams) -> None:
        self.params = params

    def prepare(self, context: Context, node: Node) -> None:
        nodes, outputs = self.params.nodes, self.params.output_tensors
        if self.partition is None or self.partition.key != key_of(nodes):
            self.partition = None  # before the next one is made: two take the memory of two
            try:
                self.partition = compile_partition(nodes, self.params.input_tensors, outputs, self.compile)
            except (Untranslatable, RuntimeError) as error:  # the runtime asks the delegate again, which claims less
                raise DelegateApplicationError(f"OpenVINO does not run the partition with these shapes: {error}") from error
        for tensor in outputs:
            context.resize_tensor(tensor, tensor.shape)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        partition = cast(Partition, self.partition)
        request = partition.compiled.create_infer_request()
        for position, tensor in enumerate(partition.inputs):
            request.set_input_tensor(position, array_tensor(tensor.data))
        for position, tensor in enumerate(self.params.output_tensors):
            request.set_output_tensor(position, array_tensor(tensor.data))
        return partial(_run, request.start_async, request.wait)

    def free(self, context: Context) -> None:
        self.partition = None

    def async_kernel(self, context: Context, node: Node) -> AsyncKernel:
        return ThreadedAsyncKernel(self.bind)


def _run(start: Callable[[], None], wait: Callable[[], None]) -> None:
    start()
    wait()
