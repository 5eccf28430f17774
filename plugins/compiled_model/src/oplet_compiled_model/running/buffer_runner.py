"""Runs of one subgraph with its inputs and outputs in buffers: bound in place where that can be, and copied elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import TensorType
from oplet.errors import OpletError, text_of
from oplet_compiled_model.errors import FAILURE, CompiledModelError
from oplet_compiled_model.running.memory import PACKED, HostMemory, address_in
from oplet_compiled_model.running.packing import pack, unpack

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from oplet import Tensor
    from oplet.toolkit import SubgraphRunner
    from oplet_compiled_model.running.signatures import Signature
    from oplet_compiled_model.tensor_buffer import TensorBuffer

__all__ = ["BufferRunner"]

#: Where a tensor lies: in this buffer, by this array.
Place = tuple["HostMemory", "NDArray[Any]"]

#: How often buffers are bound in place of others; then they are copied, until the same ones are given this many times after each other.
#: Binding is slower than copying, as it binds the nodes anew that read or write the buffers.
_MOST_CHANGES, _SETTLED = 4, 4

_RUN = "Failed to invoke the compiled model"


class BufferRunner:
    """Runs one subgraph on the application's buffers.

    Args:
        runner: the core's runner, which allocates and invokes the subgraph.
        lock: the model's lock, held during a run, so that one subgraph runs at a time.
    """

    def __init__(self, runner: SubgraphRunner, lock: threading.RLock) -> None:
        self._runner = runner
        self._invoke = runner.invoke
        self._subgraph = runner.subgraph
        self._lock = lock
        # Of the last run: its signature and buffers, and the preparation that they were bound in.
        self._signature: Signature | None = None
        self._inputs: list[TensorBuffer] = []
        self._outputs: list[TensorBuffer] = []
        self._generation = -1
        #: Whether buffers are copied, as other ones are given again and again; how often they were others, and how often the same.
        self._copies = False
        self._changes = self._repeated = 0
        #: By tensor index, the buffer that the tensor lies in, and the array by which it does.
        self._places: dict[int, Place] = {}
        #: The inputs to copy before a run, and the outputs to copy after it.
        self._read: list[tuple[HostMemory, Tensor]] = []
        self._written: list[tuple[HostMemory, Tensor]] = []
        #: The segments that write the other outputs in their places; after a run that has replaced them these are copied, too.
        self._segments: list[Any] = []

    def run(self, signature: Signature, inputs: list[TensorBuffer], outputs: list[TensorBuffer]) -> None:
        """Run the subgraph.

        Args:
            signature: the signature, which names the tensors.
            inputs: the buffer of each input.
            outputs: the buffer of each output.

        Raises:
            ValueError: a buffer was destroyed.
            CompiledModelError: a buffer does not fit, or a kernel failed.
        """
        with self._lock:
            if (
                inputs != self._inputs
                or outputs != self._outputs
                or signature is not self._signature
                or self._copies
                or self._generation != self._subgraph.generation
            ):
                self._set_up(signature, inputs, outputs)
            for memory, tensor in self._read:
                self._copy_in(memory, tensor)
            try:
                self._invoke()
            except OpletError as error:
                raise CompiledModelError(_RUN, text_of(error), code=FAILURE) from error
            if self._subgraph.segments != self._segments:
                self._find_outputs(signature, [buffer.capsule for buffer in outputs])
            for memory, tensor in self._written:
                self._copy_out(memory, tensor)

    def allocate(self) -> None:
        """Prepare the subgraph for the present shapes.

        Raises:
            CompiledModelError: the shapes do not fit the model, or a kernel refuses its node.
        """
        with self._lock:
            try:
                self._runner.allocate()
            except OpletError as error:
                raise CompiledModelError("Failed to allocate tensors", text_of(error), code=FAILURE) from error

    def resize(self, tensor: int, shape: tuple[int, ...]) -> None:
        """Change the shape of the input tensor with this index.

        Raises:
            OpletError: the input cannot have this shape.
        """
        with self._lock:
            self._runner.resize(tensor, shape)

    def leave(self, memory: HostMemory) -> None:
        """Stop using a buffer's memory, because the buffer is destroyed or gets other memory."""
        with self._lock:
            self._signature, self._inputs, self._outputs = None, [], []
            self._read, self._written, self._segments = [], [], []
            left = [index for index, (its, _) in self._places.items() if its is memory]
            for index in left:
                del self._places[index]
            if left and self._generation == self._subgraph.generation:
                self._runner.use_memory(dict.fromkeys(left))

    # Setting up ----------------------------------------------------------------------------------------------

    def _set_up(self, signature: Signature, input_buffers: list[TensorBuffer], output_buffers: list[TensorBuffer]) -> None:
        """Check the buffers of a run, give the inputs their shapes, and bind the buffers or note what is to be copied."""
        inputs = [buffer.capsule for buffer in input_buffers]
        outputs = [buffer.capsule for buffer in output_buffers]
        if signature.fault:
            raise CompiledModelError(_RUN, signature.fault, code=FAILURE)
        if len(inputs) != len(signature.inputs):
            counts = f"number of inputs:{len(signature.inputs)} vs buffers:{len(inputs)}"
            raise CompiledModelError(_RUN, f"Input buffer size mismatch: {counts}", code=FAILURE)
        if len(outputs) != len(signature.outputs):
            counts = f"number of outputs:{len(signature.outputs)} vs buffers:{len(outputs)}"
            raise CompiledModelError(_RUN, f"Output buffer size mismatch: {counts}", code=FAILURE)
        is_same = (signature, input_buffers, output_buffers) == (self._signature, self._inputs, self._outputs)
        self._signature = None
        tensors = self._subgraph.tensors
        for name, index, memory in zip(signature.inputs, signature.input_tensors, inputs):
            self._fit_input(name, tensors[index], memory)
        self.allocate()
        for name, index, memory in zip(signature.outputs, signature.output_tensors, outputs):
            _check_output(name, tensors[index], memory, is_final=not self._subgraph.is_dynamic)
        self._bind(signature, inputs, outputs, is_same=is_same)
        for memory in (*inputs, *outputs):
            memory.use(self)
        self._signature, self._inputs, self._outputs = signature, input_buffers, output_buffers
        self._generation = self._subgraph.generation

    def _fit_input(self, name: str, tensor: Tensor, memory: HostMemory) -> None:
        """Resize an input whose buffer is of another shape, where the model allows it.

        Raises:
            CompiledModelError: it does not, or the values are of another type.
        """
        if memory.type is not tensor.type and memory.as_type(tensor.type, tensor.shape) is None:
            raise _unfit("input", f"{name} has values of {tensor.type.name.lower()}, the buffer of {memory.type_name}")
        shape, wanted = memory.shape, tensor.shape
        if shape == wanted or memory.type is not tensor.type or (memory.is_given and memory.values.size == tensor.size):
            return
        free = tensor.shape_signature
        if -1 not in free:
            raise _unfit("input", f"Cannot auto-resize tensor {name}: no dims_signature exists ({_shapes(shape, wanted)})")
        if len(shape) != len(free):
            raise _unfit("input", f"Cannot auto-resize tensor {name}: rank mismatch (current: {len(free)}, new: {len(shape)})")
        if any(now != new and each != -1 for now, new, each in zip(wanted, shape, free)):
            raise _unfit(
                "input",
                f"Cannot auto-resize tensor {name}: only dimensions of -1 in {list(free)} may change ({_shapes(shape, wanted)})",
            )
        try:
            self._runner.resize(tensor.index, shape)
        except OpletError as error:
            raise CompiledModelError(_RUN, text_of(error), code=FAILURE) from error

    def _bind(self, signature: Signature, inputs: list[HostMemory], outputs: list[HostMemory], *, is_same: bool) -> None:
        """Let tensors lie in buffers, or in the runtime's memory, and note which values are to be copied before and after a run."""
        runner, tensors = self._runner, self._subgraph.tensors
        before = self._places if self._generation == self._subgraph.generation else {}
        wanted = self._wanted(signature, inputs, outputs, before)
        self._repeated = self._repeated + 1 if is_same else 0
        if self._copies:
            self._copies = self._repeated < _SETTLED
        elif any(index not in wanted or wanted[index] is not place for index, place in before.items()):
            self._changes += 1
            self._copies = self._changes > _MOST_CHANGES
        if self._copies:
            wanted = {}
        moves: dict[int, NDArray[Any] | None] = {index: None for index in before if index not in wanted}
        moves.update((index, array) for index, (_, array) in wanted.items())
        try:
            done = runner.use_memory(moves) if moves else set()
        except OpletError as error:
            raise CompiledModelError(_RUN, text_of(error), code=FAILURE) from error
        self._places = {index: place for index, place in wanted.items() if index in done}
        self._read = [
            (memory, tensors[index])
            for index, memory in zip(signature.input_tensors, inputs)
            if self._array_in(memory, index) is None
        ]
        self._find_outputs(signature, outputs)

    def _find_outputs(self, signature: Signature, outputs: list[HostMemory]) -> None:
        """Note which outputs a run does not write into their buffers itself."""
        tensors = self._subgraph.tensors
        self._written = [
            (memory, tensors[index])
            for index, memory in zip(signature.output_tensors, outputs)
            if memory.given is not None
            or index in signature.input_tensors
            or tensors[index].is_constant
            or not tensors[index].has_data
            or self._array_in(memory, index) is not tensors[index].data
        ]
        self._segments = self._subgraph.segments[:]

    def _array_in(self, memory: HostMemory, index: int) -> NDArray[Any] | None:
        """Return the array by which a tensor lies in a buffer; None if it does not."""
        place = self._places.get(index)
        return place[1] if place is not None and place[0] is memory else None

    def _wanted(
        self, signature: Signature, inputs: list[HostMemory], outputs: list[HostMemory], before: Mapping[int, Place]
    ) -> dict[int, Place]:
        """Return where tensors are to lie: in buffers that are large enough, and overlap nothing else that a run writes."""
        tensors = self._subgraph.tensors
        found: dict[int, Place] = {}
        for role, indices, memories in (("in", signature.input_tensors, inputs), ("out", signature.output_tensors, outputs)):
            for index, memory in zip(indices, memories):
                array = memory.as_type(tensors[index].type, tensors[index].shape)
                if index in found or array is None or array.dtype.hasobject or not array.size:
                    continue
                if role == "out" and any(
                    np.may_share_memory(array, other) and not self._may_overwrite(at, other, index, array)
                    for at, (_, other) in found.items()
                ):
                    continue
                place = before.get(index)
                found[index] = place if place is not None and _is_same(place, memory, array) else (memory, array)
        return found

    def _may_overwrite(self, at: int, other: NDArray[Any], index: int, array: NDArray[Any]) -> bool:
        """Return whether an output may lie just where this input does, as the caches of a language model may."""
        same = address_in(array) == address_in(other) and array.nbytes == other.nbytes
        return same and at in self._subgraph.inputs and self._runner.can_overwrite(at, index)

    # Copies --------------------------------------------------------------------------------------------------

    def _copy_in(self, memory: HostMemory, tensor: Tensor) -> None:
        if tensor.type in PACKED and memory.type is tensor.type:
            value: Any = unpack(memory.values, tensor.type, tensor.size).reshape(tensor.shape)
        else:
            value = memory.as_type(tensor.type, tensor.shape)
        try:
            self._runner.set(tensor.index, value)
        except OpletError as error:
            raise CompiledModelError(_RUN, text_of(error), code=FAILURE) from error

    def _copy_out(self, memory: HostMemory, tensor: Tensor) -> None:
        """Copy an output into its buffer, which gets the output's shape if that was not known before, and into the array given for it."""
        try:
            data = self._runner.tensor(tensor.index).data
        except OpletError as error:
            raise CompiledModelError(_RUN, text_of(error), code=FAILURE) from error
        self._fill(memory, tensor, data)
        if memory.given is not None:
            memory.given[...] = memory.values

    def _fill(self, memory: HostMemory, tensor: Tensor, data: NDArray[Any]) -> None:
        if self._subgraph.is_dynamic and not memory.is_given and memory.shape != data.shape:
            memory.resize(data.shape)
        if tensor.type in PACKED and memory.type is tensor.type:
            packed = pack(data, tensor.type)
            memory.values[: packed.size] = packed
            return
        place = memory.as_type(tensor.type, data.shape)
        if place is None:
            raise _unfit("output", f"{tensor} does not fit into the buffer of {memory.values.size} values of {memory.type_name}")
        if place is not data:
            place[...] = data


def _check_output(name: str, tensor: Tensor, memory: HostMemory, *, is_final: bool) -> None:
    """Check that an output's buffer is of its type or of bytes, and large enough if the output's shape is final.

    Raises:
        CompiledModelError: it is not.
    """
    same = memory.type is tensor.type
    if not same and memory.type is not TensorType.UINT8:
        raise _unfit("output", f"{name} has values of {tensor.type.name.lower()}, the buffer of {memory.type_name}")
    if not is_final or (same and memory.type in PACKED and memory.values.size * (8 // PACKED[memory.type]) >= tensor.size):
        return
    array = memory.as_type(tensor.type, tensor.shape)
    if array is None:
        raise _unfit(
            "output", f"{name} has the shape {list(tensor.shape)}, for which the buffer of {list(memory.shape)} is too small"
        )
    if not array.flags.writeable:
        raise _unfit("output", f"the buffer of {name} is an array of the program's that is read-only")


def _unfit(role: str, why: str) -> CompiledModelError:
    return CompiledModelError(_RUN, f"Failed to register {role} tensor buffer", why, code=FAILURE)


def _shapes(got: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    return f"the buffer has the shape {list(got)}, the input {list(wanted)}"


def _is_same(place: Place, memory: HostMemory, array: NDArray[Any]) -> bool:
    """Return whether an array of a buffer's is the one in which a tensor lies already."""
    there = place[1]
    alike = (there.shape, there.dtype, address_in(there)) == (array.shape, array.dtype, address_in(array))
    return place[0] is memory and alike
