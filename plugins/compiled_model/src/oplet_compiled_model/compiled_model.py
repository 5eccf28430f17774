"""CompiledModel: LiteRT's newer API to run models, on oplet's interpreter.

Source of names, arguments, dictionaries and messages: the package ai-edge-litert 2.3.0.
"""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any

from oplet import Interpreter
from oplet.errors import OpletError, StateError, text_of
from oplet.toolkit import bytes_needed
from oplet_compiled_model.environment import Environment
from oplet_compiled_model.errors import FAILURE, INVALID, NOT_FOUND, CompiledModelError
from oplet_compiled_model.options import Options
from oplet_compiled_model.options.cpu_options import CpuOptions
from oplet_compiled_model.options.hardware_accelerator import HardwareAccelerator
from oplet_compiled_model.running.accelerators import accelerate, kernels_of, leftover_node, threads_of
from oplet_compiled_model.running.loaded import Loaded, check_shape, entry_of, index_of_name
from oplet_compiled_model.running.memory import HostMemory
from oplet_compiled_model.running.signatures import Signature
from oplet_compiled_model.tensor_buffer import TensorBuffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from oplet import Delegate

__all__ = ["CompiledModel"]


class CompiledModel:
    """A model that runs on buffers; a drop-in for `ai_edge_litert.compiled_model.CompiledModel`.

    `from_file` and `from_buffer` make it. Threads may share one: their runs go one after the other.

    Args:
        interpreter: the interpreter that runs the model.
        environment: the environment to keep; a new one unless given.
        delegates: the delegates that were applied to the interpreter for the hardware that was asked for.

    Examples:
        >>> model = CompiledModel.from_file("model.tflite")  # doctest: +SKIP
        >>> inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)  # doctest: +SKIP
        >>> inputs[0].write(x)  # doctest: +SKIP
        >>> model.run_by_index(0, inputs, outputs)  # doctest: +SKIP
        >>> outputs[0].read((1, 10), np.float32)  # doctest: +SKIP
    """

    def __init__(
        self, interpreter: Interpreter, environment: Environment | None = None, delegates: Iterable[Delegate] = ()
    ) -> None:
        self._model: Loaded | None = Loaded(interpreter, list(delegates))
        self._environment = Environment.create() if environment is None else environment

    def __enter__(self) -> CompiledModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the model and free its memory; buffers stay usable. Afterwards only `environment` can be used."""
        loaded, self._model = self._model, None
        if loaded is not None:
            with loaded.lock:
                loaded.interpreter.close()

    @classmethod
    def from_file(
        cls,
        model_path: str | os.PathLike[str],
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> CompiledModel:
        """Open the model in a file.

        Args:
            model_path: the file, which is memory-mapped.
            hardware_accel: the hardware to run on: the CPU unless given. NPUs and GPUs need a package with a delegate for them;
                with `| CPU`, what they cannot run, and everything if there is none, runs on the CPU.
            environment: an environment to share with other models.
            options: options, in place of `hardware_accel`.

        Raises:
            TypeError: `model_path` is no path.
            ValueError: both `options` and `hardware_accel` are given.
            RuntimeError: the file cannot be read or is no model, or the hardware does not run it.
        """
        path = os.fspath(model_path)
        if not isinstance(path, str):
            raise TypeError(f"model_path is {type(model_path).__name__}; give a str or a path.")
        return cls._made("Failed to load model from file", hardware_accel, environment, options, model_path=path)

    @classmethod
    def from_buffer(
        cls,
        model_data: bytes | bytearray | memoryview,
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> CompiledModel:
        """Open a model from its bytes; the arguments are those of `from_file`. A buffer that may change is copied.

        Raises:
            TypeError: `model_data` is no bytes.
            ValueError: both `options` and `hardware_accel` are given.
            RuntimeError: the bytes are no model, or the hardware does not run it.
        """
        if not isinstance(model_data, bytes | bytearray | memoryview):
            raise TypeError(f"model_data is {type(model_data).__name__}; give the model's bytes.")
        return cls._made(
            "Failed to load model from buffer", hardware_accel, environment, options, model_content=bytes(model_data)
        )

    @classmethod
    def _made(
        cls, failure: str, hardware_accel: Any, environment: Environment | None, options: Options | None, **source: Any
    ) -> CompiledModel:
        if options is None:
            hardware = HardwareAccelerator.CPU if hardware_accel is None else hardware_accel
            options = Options(hardware, CpuOptions(num_threads=1))
        elif hardware_accel is not None:
            raise ValueError("Pass either options or hardware_accel, not both.")
        environment = environment or Environment.create()
        environment.capsule  # noqa: B018  # which a closed one refuses
        threads = threads_of(options)
        int(options.hardware_accelerators)  # a ValueError before the model is opened, as in LiteRT
        try:
            interpreter = Interpreter(**source, num_threads=threads, experimental_op_resolver_type=kernels_of(options))
        except OpletError as error:
            raise CompiledModelError(failure, text_of(error)) from error
        return cls(interpreter, environment, accelerate(interpreter, options))

    @property
    def environment(self) -> Environment:
        """The environment that the model was made with."""
        return self._environment

    @property
    def interpreter(self) -> Interpreter:
        """The interpreter that runs the model, for `explain`, `delegation_reports` and so on; LiteRT's class does not have this.

        Raises:
            StateError: the model was closed.
        """
        return self._loaded.interpreter

    @property
    def _loaded(self) -> Loaded:
        if self._model is None:
            raise StateError("The CompiledModel was closed and cannot be used any more; make another one.")
        return self._model

    # Signatures ----------------------------------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the signatures, `{key: {"inputs": [names], "outputs": [names]}}`, with the names in the graph's order."""
        return {each.key: {"inputs": each.inputs[:], "outputs": each.outputs[:]} for each in self._loaded.signatures}

    def get_signature_by_index(self, index: int) -> dict[str, Any]:
        """Return a signature, `{"key": key, "inputs": [names], "outputs": [names]}`.

        Raises:
            RuntimeError: there is no signature of this index.
        """
        found = self._loaded.signature(index)
        return {"key": found.key, "inputs": found.inputs[:], "outputs": found.outputs[:]}

    def get_num_signatures(self) -> int:
        """Return the number of signatures, at least one: a model without any has one of its inputs and outputs."""
        return len(self._loaded.signatures)

    def get_signature_index(self, key: str) -> int:
        """Return the index of a signature by its key, "" for the first one; -1 if there is none."""
        return self._loaded.index_of(key)

    def get_input_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """Return the inputs by name: `{"name": the tensor's, "index": its index, "dtype": name, "shape": [sizes]}` of each, as of now.

        Raises:
            RuntimeError: there is no such signature.
        """
        signature = self._loaded.named(signature_key, inline=True)
        return self._details(signature, signature.inputs, signature.input_tensors)

    def get_output_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """Return the outputs by name, as `get_input_tensor_details`; the shapes are those for the inputs' present shapes.

        Raises:
            RuntimeError: there is no such signature, or the model cannot be prepared.
        """
        signature = self._loaded.named(signature_key, inline=True)
        self._loaded.runner(signature).allocate()
        return self._details(signature, signature.outputs, signature.output_tensors)

    def _details(self, signature: Signature, names: list[str], indices: list[int]) -> dict[str, Any]:
        tensors = [self._loaded.tensor(signature, index) for index in indices]
        return {
            name: {"name": tensor.name, "index": tensor.index, "dtype": tensor.type.name.lower(), "shape": list(tensor.shape)}
            for name, tensor in zip(names, tensors)
        }

    # Buffers -------------------------------------------------------------------------------------------------

    def get_input_buffer_requirements(self, input_index: int, signature_index: int = 0) -> dict[str, Any]:
        """Return what a buffer of an input needs, `{"buffer_size": bytes, "supported_types": [1]}`; 1 is host memory.

        Raises:
            RuntimeError: there is no such input or signature.
        """
        signature = self._loaded.signature(signature_index)
        return self._requirements(signature, entry_of(signature.input_tensors, input_index, "Input"))

    def get_output_buffer_requirements(self, output_index: int, signature_index: int = 0) -> dict[str, Any]:
        """Return what a buffer of an output needs, as `get_input_buffer_requirements`.

        Raises:
            RuntimeError: there is no such output or signature, or the model cannot be prepared.
        """
        signature = self._loaded.signature(signature_index)
        index = entry_of(signature.output_tensors, output_index, "Output")
        self._loaded.runner(signature).allocate()
        return self._requirements(signature, index)

    def _requirements(self, signature: Signature, index: int) -> dict[str, Any]:
        tensor = self._loaded.tensor(signature, index)
        return {"buffer_size": bytes_needed(tensor.shape, tensor.type) or 0, "supported_types": [1]}

    def is_fully_accelerated(self) -> bool:
        """Return whether delegates for the hardware that was asked for run every node; also True for a graph without nodes.

        On the CPU this is False unless `CpuKernelMode.DELEGATE` was asked for and a delegate has taken the whole graph.
        """
        return leftover_node(self._loaded.interpreter, self._loaded.delegates) is None

    def create_input_buffer_by_name(self, signature_key: str, input_name: str) -> TensorBuffer:
        """Return a new buffer for an input, of zeros or empty strings.

        Raises:
            RuntimeError: there is no such signature or input.
        """
        signature = self._loaded.named(signature_key)
        return self._buffer(signature, index_of_name(signature.inputs, signature.input_tensors, input_name, "Input"))

    def create_output_buffer_by_name(self, signature_key: str, output_name: str) -> TensorBuffer:
        """Return a new buffer for an output, of zeros or empty strings. One whose shape depends on values grows with them.

        Raises:
            RuntimeError: there is no such signature or output, or the model cannot be prepared.
        """
        signature = self._loaded.named(signature_key)
        index = index_of_name(signature.outputs, signature.output_tensors, output_name, "Output")
        self._loaded.runner(signature).allocate()
        return self._buffer(signature, index)

    def create_input_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Return a new buffer for each input of a signature.

        Raises:
            RuntimeError: there is no signature of this index.
        """
        signature = self._loaded.signature(signature_index)
        return [self._buffer(signature, index) for index in signature.input_tensors]

    def create_output_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Return a new buffer for each output of a signature.

        Raises:
            RuntimeError: there is no signature of this index, or the model cannot be prepared.
        """
        signature = self._loaded.signature(signature_index)
        self._loaded.runner(signature).allocate()
        return [self._buffer(signature, index) for index in signature.output_tensors]

    def _buffer(self, signature: Signature, index: int) -> TensorBuffer:
        tensor = self._loaded.tensor(signature, index)
        try:
            memory = HostMemory.new(tensor.type, tensor.shape)
        except (MemoryError, ValueError) as error:
            raise CompiledModelError(
                "Failed to create a tensor buffer", f"there is no memory for {tensor}", code=FAILURE
            ) from error
        return TensorBuffer(memory, self._environment)

    # Shapes and state ----------------------------------------------------------------------------------------

    def resize_input_tensor(self, input_index: int, dims: Sequence[int], signature_index: int = 0, strict: bool = True) -> None:
        """Change an input's shape; buffers that exist keep their shapes.

        Args:
            input_index: the input.
            dims: its new shape, of positive sizes.
            signature_index: the signature.
            strict: refuse to change dimensions other than those that are -1 in the model.

        Raises:
            RuntimeError: there is no such input or signature, or the input cannot have this shape.
        """
        shape = tuple(operator.index(dim) for dim in dims)
        signature = self._loaded.signature(signature_index)
        tensor = self._loaded.tensor(signature, entry_of(signature.input_tensors, input_index, "Input"))
        check_shape(shape, tensor, strict)
        try:
            self._loaded.runner(signature).resize(tensor.index, shape)
        except OpletError as error:
            raise CompiledModelError("Failed to resize an input", text_of(error), code=INVALID) from error

    def resize_input_tensor_by_name(self, signature_key: str, input_name: str, dims: Sequence[int], strict: bool = True) -> None:
        """Change an input's shape by name, as `resize_input_tensor`.

        Raises:
            ValueError: there is no such signature or input.
            RuntimeError: the input cannot have this shape.
        """
        index = self._loaded.index_of(signature_key)
        if index < 0:
            raise ValueError(f"Unknown signature: {signature_key}")
        names = self._loaded.signatures[index].inputs
        if input_name not in names:
            raise ValueError(f"Unknown input '{input_name}' for signature '{signature_key}'")
        self.resize_input_tensor(names.index(input_name), dims, index, strict)

    def reset_all_variables(self) -> None:
        """Set all variable tensors to zero, as `Interpreter.reset_all_variables`. LiteRT's class has no such method."""
        with self._loaded.lock:
            self._loaded.interpreter.reset_all_variables()

    # Running -------------------------------------------------------------------------------------------------

    def run_by_name(
        self, signature_key: str, input_map: Mapping[str, TensorBuffer], output_map: Mapping[str, TensorBuffer]
    ) -> None:
        """Run a signature on buffers, mapped from the names of its inputs and outputs; unknown names are ignored.

        Raises:
            ValueError: a buffer was destroyed.
            RuntimeError: there is no such signature, a buffer is missing or does not fit, or a kernel failed.
        """
        inputs, outputs = dict(input_map.items()), dict(output_map.items())
        for role, names in (("input", inputs), ("output", outputs)):
            if not all(isinstance(name, str) for name in names):
                raise CompiledModelError(f"{role}_map key not a string.")
        loaded = self._loaded
        index = loaded.index_of(signature_key)
        if index < 0:
            raise CompiledModelError("Failed to get signature_index", f"Signature not found: {signature_key}", code=NOT_FOUND)
        signature = loaded.signatures[index]
        for role, wanted, given in (("output", signature.outputs, outputs), ("input", signature.inputs, inputs)):
            if missing := [name for name in wanted if name not in given]:
                message = f"The given map is missing some {role} TensorBuffers"
                raise CompiledModelError(message, f"{', '.join(missing)}: the {role}_map needs one for each", code=NOT_FOUND)
        run = loaded.runs.get(index) or loaded.run_of(index)
        run([inputs[name] for name in signature.inputs], [outputs[name] for name in signature.outputs])

    def run_by_index(
        self, signature_index: int, input_buffers: Iterable[TensorBuffer], output_buffers: Iterable[TensorBuffer]
    ) -> None:
        """Run a signature on lists of buffers, in the order of its inputs and outputs.

        A second run on the same buffers copies and allocates nothing.

        Raises:
            ValueError: a buffer was destroyed.
            RuntimeError: there is no such signature, a buffer is missing or does not fit, or a kernel failed.
        """
        loaded = self._model or self._loaded
        run = loaded.runs.get(signature_index) or loaded.run_of(signature_index)
        run([*input_buffers], [*output_buffers])
