"""Runs a partition: one call of a compiled function, whose results stay on the device until somebody reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax

from oplet import Context, DelegateKernel, DelegateParams, Node, charge
from oplet.errors import DelegateApplicationError, InvokeError, LimitError, failures
from oplet_xla_delegate.checking import Reference
from oplet_xla_delegate.device import wide_types
from oplet_xla_delegate.partition import MOST_ITERATIONS, Engine, Partition, Refused, compile_partition, key_of
from oplet_xla_delegate.tracing import Body, Untranslatable, first_line

if TYPE_CHECKING:
    from oplet import Tensor

__all__ = ["PartitionKernel"]

#: For so many shapes a partition keeps its functions.
_SHAPES = 8


class PartitionKernel(DelegateKernel):
    """Kernel of one partition.

    Args:
        partition: the function as compiled before its nodes were claimed.
        engine: the device and settings to compile for.
        bodies: the subgraphs that nodes call.
        reference: runs oplet's kernels for comparison; None to compare nothing.
    """

    def __init__(
        self, partition: Partition | None, engine: Engine, bodies: Mapping[int, Body], reference: Reference | None
    ) -> None:
        self.engine = engine
        self.bodies = bodies
        self.reference = reference
        self.partition = partition
        self.made: dict[Any, Partition] = {}

    def init(self, context: Context, params: DelegateParams) -> None:
        self.params = params
        # What another partition of this delegate makes is on the device.
        self.arriving = [t for t in params.input_tensors if not t.is_constant and t.delegate is not params.delegate]
        if self.partition is not None:
            self.made[key_of(params.nodes, self.bodies)] = self.partition

    def prepare(self, context: Context, node: Node) -> None:
        params, key = self.params, key_of(self.params.nodes, self.bodies)
        found = self.made.pop(key, None)
        if found is None:
            try:
                found = compile_partition(
                    params.nodes, params.input_tensors, params.output_tensors, self.bodies, self.engine, charge, self.reference
                )
            except LimitError:
                raise
            except (Untranslatable, Refused) as error:  # the runtime asks the delegate again, which claims less
                raise DelegateApplicationError(f"XLA does not run the partition with these shapes: {error}") from error
            except failures() as error:
                raise DelegateApplicationError(
                    f"XLA does not run the partition with these shapes: {first_line(error)}"
                ) from error
        self.made[key] = self.partition = found
        while len(self.made) > _SHAPES:
            del self.made[next(iter(self.made))]
        for tensor in params.output_tensors:
            context.resize_tensor(tensor, tensor.shape)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        partition = self.partition
        if partition is None:
            raise InvokeError("The kernel of the delegate 'xla' is bound before it is prepared.")
        outputs, delegate, put = self.params.output_tensors, self.params.delegate, self.engine.device.put
        fed, run, device = partition.fed, partition.run, self.engine.device.jax

        def value(tensor: Tensor) -> Any:
            handle = tensor.buffer_handle
            if handle is None or tensor.delegate is not delegate:
                return put(tensor.data)
            if not isinstance(handle, jax.Array):
                handle = jax.dlpack.from_dlpack(handle)
            return handle if handle.device == device else jax.device_put(handle, device)

        def invoke() -> None:
            try:
                made, overrun = run([value(tensor) for tensor in fed])
                # An invoke that is over is over: what fails, fails here, and nothing queues up that nobody reads.
                jax.block_until_ready(made)
                ended = not overrun
            except failures() as error:
                raise InvokeError(f"XLA fails on {self.engine.device}: {first_line(error)}") from error
            if not ended:
                raise LimitError(f"A loop that XLA runs did not end after {MOST_ITERATIONS} iterations, which is the limit.")
            for tensor, result in zip(outputs, made):
                tensor.buffer_handle = result
                tensor.data_is_stale = True

        def invoke_wide() -> None:
            with wide_types(True):
                invoke()

        return invoke_wide if partition.wide else invoke

    def remark(self) -> str:
        """Return a sentence on the device, the bytes copied there and back, and the compile time; "" before `prepare`."""
        if self.partition is None:
            return ""
        goes = sum(tensor.nbytes for tensor in self.arriving if tensor.buffer_handle is None)
        comes = sum(tensor.nbytes for tensor in self.params.output_tensors)
        stays = sum(weight.nbytes for weight in self.partition.weights)
        return (
            f"one function on {self.engine.device}, compiled in {self.partition.executable.seconds:.2f} s; an invoke copies {goes:,} bytes "
            f"there, and {comes:,} back as far as they are read; {stays:,} bytes of constants are there"
        )

    def free(self, context: Context) -> None:
        self.partition = None
        self.made.clear()
