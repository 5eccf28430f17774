"""Runs a partition: one OpenVINO request that works directly on the runtime's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import openvino

from oplet import Context, DelegateKernel, DelegateParams, Node, charge
from oplet.errors import DelegateApplicationError, LimitError, text_of
from oplet_openvino_delegate.graph import Untranslatable
from oplet_openvino_delegate.partition import Engine, Partition, array_tensor, compile_partition, key_of

if TYPE_CHECKING:
    from oplet import AsyncKernel


class PartitionKernel(DelegateKernel):
    """Kernel of one compiled partition.

    Args:
        partition: the graph as compiled before its nodes were claimed, used until a shape changes; None to compile it in
            `prepare`.
        engine: the device and settings to compile for.
    """

    def __init__(self, partition: Partition | None, engine: Engine) -> None:
        self.partition = partition
        self.engine = engine

    def init(self, context: Context, params: DelegateParams) -> None:
        self.params = params

    def prepare(self, context: Context, node: Node) -> None:
        nodes, outputs = self.params.nodes, self.params.output_tensors
        if self.partition is None or self.partition.key != key_of(nodes):
            self.partition = None  # before the next one is made: two take the memory of two
            try:
                self.partition = compile_partition(nodes, self.params.input_tensors, outputs, self.engine, charge)
            except (Untranslatable, RuntimeError) as error:  # the runtime asks the delegate again, which claims less
                raise DelegateApplicationError(
                    f"OpenVINO does not run the partition with these shapes: {text_of(error)}"
                ) from error
        else:
            with suppress(LimitError):  # it was allowed when it was made, beside what there was then
                charge(self.partition.nbytes)
        for tensor in outputs:
            context.resize_tensor(tensor, tensor.shape)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        partition = cast(Partition, self.partition)
        request = partition.compiled.create_infer_request()
        inputs, outputs = ([tensor.data for tensor in tensors] for tensors in (partition.inputs, self.params.output_tensors))
        for position, array in enumerate(inputs):
            request.set_input_tensor(position, array_tensor(array))
        copies = [(outputs[position], inputs[source]) for position, source in partition.handed_on.items()]
        for position, array in enumerate(outputs):
            if position not in partition.handed_on:
                request.set_output_tensor(position, array_tensor(array))
        return partial(_run, request, [*inputs, *outputs], copies)

    def free(self, context: Context) -> None:
        self.partition = None

    def async_kernel(self, context: Context, node: Node) -> AsyncKernel:
        from oplet import ThreadedAsyncKernel  # of oplet-predictor, which runs models asynchronously

        return ThreadedAsyncKernel(self.bind)


def _run(request: openvino.InferRequest, arrays: Sequence[object], copies: Sequence[tuple[Any, Any]]) -> None:
    """Run a request on this thread, which costs half as much as handing it over.

    Args:
        arrays: own the memory of the request's tensors, and are only kept alive here.
        copies: (target, source) of outputs that the request leaves to be copied from inputs.
    """
    request.infer(share_outputs=True)  # or the outputs would be copied into new arrays, which nobody reads
    for target, source in copies:
        np.copyto(target, source)
