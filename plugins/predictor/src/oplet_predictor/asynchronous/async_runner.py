"""The asynchronous signature runner: runs a fully delegated model by the names of its signature.

Contract: tflite/core/async/c/async_signature_runner.h of google-ai-edge/LiteRT. Where its functions return an error, these
raise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oplet.errors import SignatureError
from oplet.toolkit import Subgraph, SubgraphRunner
from oplet_predictor.asynchronous.async_subgraph import AsyncSubgraph
from oplet_predictor.asynchronous.attributes import Attributes, Reconciliation
from oplet_predictor.asynchronous.kernel import BackendBuffer
from oplet_predictor.asynchronous.task import ExecutionTask, IoType

if TYPE_CHECKING:
    from oplet import Interpreter

__all__ = ["AsyncSignatureRunner"]


class AsyncSignatureRunner:
    """Registers buffers, reconciles their attributes with the backend (a delegate's `AsyncKernel`), and runs tasks on them.

    Obtained from `Interpreter.get_async_signature_runner`. Handles and tasks are shared by all runners of a subgraph.

    Examples:
        >>> runner = interpreter.get_async_signature_runner()  # doctest: +SKIP
        >>> numpy_buffer = {BufferAttribute.RESOURCE_TYPE_NAME: NUMPY_BUFFER}  # doctest: +SKIP
        >>> x_handle = runner.register_buffer(IoType.INPUT, BackendBuffer(x), numpy_buffer)  # doctest: +SKIP
        >>> y_handle = runner.register_buffer(IoType.OUTPUT, BackendBuffer(y), numpy_buffer)  # doctest: +SKIP
        >>> runner.prepare_backends()  # doctest: +SKIP
        >>> with runner.create_task() as task:  # doctest: +SKIP
        ...     task.set_buffer("x", x_handle)
        ...     task.set_buffer("y", y_handle)
        ...     runner.invoke_async(task)
        ...     runner.wait(task)  # or, in a coroutine: await task

    Raises:
        SignatureError: there is no such signature (a ValueError).
        DelegateError: the model is not fully delegated by one backend, or the backend cannot run asynchronously (a RuntimeError).
    """

    def __init__(self, interpreter: Interpreter, signature_key: str | None = None) -> None:
        self._interpreter = interpreter  # which is not to be dropped
        index, inputs, outputs = _signature(interpreter, signature_key)
        self._names: dict[IoType, Mapping[str, int]] = {IoType.INPUT: inputs, IoType.OUTPUT: outputs}
        self._runner = SubgraphRunner(interpreter, index)
        self._backend = _backend(self._runner, interpreter.model.name)

    # Inputs and outputs --------------------------------------------------------------------------------------

    @property
    def input_names(self) -> list[str]:
        """The inputs' names."""
        return list(self._names[IoType.INPUT])

    @property
    def output_names(self) -> list[str]:
        """The outputs' names."""
        return list(self._names[IoType.OUTPUT])

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Return the details of each input, by name, as `SignatureRunner` gives them."""
        return self._details(IoType.INPUT)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Return the details of each output, by name."""
        return self._details(IoType.OUTPUT)

    def _details(self, io: IoType) -> dict[str, dict[str, Any]]:
        return {name: self._runner.details(index) for name, index in self._names[io].items()}

    def tensor_index(self, tensor: str | int, io: IoType | None = None) -> int:
        """Return the tensor index of an input or output.

        Args:
            tensor: its name in the signature, or its tensor index.
            io: INPUT or OUTPUT; only needed where an input and an output have the same name.

        Raises:
            SignatureError: there is no such tensor, or an input and an output of that name (a ValueError).
        """
        subgraph = self._backend.subgraph
        if isinstance(tensor, int):
            if tensor in subgraph.inputs or tensor in subgraph.outputs:
                return tensor
            raise SignatureError(
                f"Tensor {tensor} is no input or output; the inputs are {subgraph.inputs}, the outputs {subgraph.outputs}."
            )
        found = {self._names[kind][tensor] for kind in IoType if io in (None, kind) and tensor in self._names[kind]}
        if len(found) == 1:
            return found.pop()
        if found:
            raise SignatureError(f"An input and an output are called {tensor}; say which with io=IoType.INPUT or IoType.OUTPUT.")
        raise SignatureError(
            f"Signature tensor name {tensor} was not found. The inputs are {', '.join(self.input_names)}, the outputs "
            f"{', '.join(self.output_names)}."
        )

    # Buffers -------------------------------------------------------------------------------------------------

    def register_buffer(self, io: IoType, buffer: BackendBuffer, attributes: Attributes) -> int:
        """Register a buffer with the backend and return its handle, which tasks refer to.

        Args:
            io: whether it will be read (INPUT) or written (OUTPUT).
            buffer: the buffer; the application owns it and must keep it until it is unregistered.
            attributes: at least `BufferAttribute.RESOURCE_TYPE_NAME`, one of `get_supported_buffer_types(io)`.

        Raises:
            TensorError: the backend cannot use it (a ValueError).
        """
        return self._backend.register_buffer(io, buffer, attributes)

    def register_buffer_slice(self, pool: int, attributes: Attributes) -> int:
        """Register a slice of a registered buffer and return the slice's handle.

        Args:
            pool: the handle of a whole buffer; slices of slices are refused.
            attributes: the slice's OFFSET and SIZE in bytes.

        Raises:
            TensorError: there is no such buffer, or the slice is not inside it (a ValueError).
        """
        return self._backend.register_buffer_slice(pool, attributes)

    def unregister_buffer(self, handle: int) -> None:
        """Unregister a buffer or slice from the backend.

        Raises:
            TensorError: there is no such handle (a ValueError).
            StateError: the buffer still has slices, or a task in flight uses it (a RuntimeError).
        """
        self._backend.unregister_buffer(handle)

    def set_buffer_attributes(self, buffer: BackendBuffer, attributes: Attributes) -> None:
        """Replace a registered buffer's attributes.

        Raises:
            TensorError: the buffer is not registered, or the backend refuses the attributes (a ValueError).
        """
        self._backend.set_buffer_attributes(buffer, attributes)

    def get_buffer_attributes(self, buffer: BackendBuffer) -> dict[Any, Any]:
        """Return a registered buffer's attributes.

        Raises:
            TensorError: the buffer is not registered (a ValueError).
        """
        return self._backend.get_buffer_attributes(buffer)

    def check_handle(self, handle: int) -> None:
        """Check that a buffer is registered under the handle.

        Raises:
            TensorError: no buffer is (a ValueError).
        """
        self._backend.check_handle(handle)

    # Attributes ----------------------------------------------------------------------------------------------

    def get_supported_buffer_types(self, io: IoType) -> list[str]:
        """Return the values of `BufferAttribute.RESOURCE_TYPE_NAME` that the backend accepts."""
        return self._backend.supported_buffer_types(io)

    def get_supported_synchronization_types(self, io: IoType) -> list[str]:
        """Return the values of `SynchronizationAttribute.OBJECT_TYPE_NAME` that the backend accepts."""
        return self._backend.supported_synchronizations(io)

    def reconcile_restrictions(self, tensor: str | int, attributes: Attributes, io: IoType | None = None) -> Reconciliation:
        """Merge the attributes that the application wants for a tensor's buffers or synchronization with the backend's needs."""
        return self._backend.reconcile_restrictions(self.tensor_index(tensor, io), attributes)

    def set_attributes(self, tensor: str | int, attributes: Attributes, io: IoType | None = None) -> None:
        """Set the attributes of a tensor's buffers or synchronization; call `prepare_backends` afterwards.

        Raises:
            PrepareError: the attributes lack something that the backend needs (a RuntimeError).
            StateError: a task is in flight (a RuntimeError).
        """
        self._backend.set_attributes(self.tensor_index(tensor, io), attributes)

    def prepare_backends(self) -> None:
        """Allocate the tensors where that was not done, and prepare the backend. Needed before the first task, after
        `set_attributes`, and after inputs were resized.

        Raises:
            PrepareError: the backend refuses (a RuntimeError).
            StateError: a task is in flight (a RuntimeError).
        """
        self._runner.allocate()
        self._backend.prepare()

    # Running -------------------------------------------------------------------------------------------------

    def create_task(self) -> ExecutionTask:
        """Return a new task without buffers; release it with `finish`, or use it in a `with` block.

        Raises:
            StateError: `prepare_backends` was not called (a RuntimeError).
        """
        return self._backend.create_task(self)

    def invoke_async(self, task: ExecutionTask) -> None:
        """Start the task and return at once.

        Raises:
            StateError: the task was started and not waited for yet, or it was released (a RuntimeError).
            InvokeError: the backend cannot start the task (a RuntimeError); it may be started again.
            ModelError: the model's file was cut short.
        """
        self._interpreter.model.check_files()
        self._backend.invoke_async(task)

    def wait(self, task: ExecutionTask) -> None:
        """Block until the task's execution has ended. Any number of threads may wait, any number of times; all get the
        same answer until the task is started again. A task that was never started is ready.

        Raises:
            InvokeError: the execution failed (a RuntimeError).
        """
        self._backend.wait(task)

    def finish(self, task: ExecutionTask) -> None:
        """Wait for the task's execution to end and release the task, which cannot be used afterwards.

        Raises:
            StateError: the task was released already (a RuntimeError).
            InvokeError: the backend failed to release it (a RuntimeError).
        """
        self._backend.finish(task)


def _backend(runner: SubgraphRunner, model: str) -> AsyncSubgraph:
    """Return the subgraph's asynchronous backend, which all its runners share."""
    known = runner.backend
    if not isinstance(known, AsyncSubgraph) or not known.is_current:
        known = runner.backend = AsyncSubgraph(runner.subgraph, runner.context, model)
    return known


def _signature(interpreter: Interpreter, key: str | None) -> tuple[int, Mapping[str, int], Mapping[str, int]]:
    """Return the subgraph of a signature and its tensor indices by name; without a key, the first signature of the primary subgraph.

    In a model without signatures the names are those of the input and output tensors.
    """
    if key is None:
        keys = [key for key in interpreter.get_signature_list() if key]
        if not keys:
            subgraph = SubgraphRunner(interpreter).subgraph
            return 0, _own_names(subgraph, "input", subgraph.inputs), _own_names(subgraph, "output", subgraph.outputs)
        key = next((key for key in keys if interpreter.get_signature_runner(key).subgraph_index == 0), None)
        if key is None:
            raise SignatureError("The model has signature def but none of those points to primary subgraph. Name one of them.")
    signature = interpreter.get_signature_runner(key)
    signature.ensure_usable()
    inputs, outputs = (
        {name: int(details["index"]) for name, details in told.items()}
        for told in (signature.get_input_details(), signature.get_output_details())
    )
    return signature.subgraph_index, inputs, outputs


def _own_names(subgraph: Subgraph, role: str, indices: Sequence[int]) -> Mapping[str, int]:
    return {subgraph.tensors[index].name or f"{role}{position}": index for position, index in enumerate(indices)}
