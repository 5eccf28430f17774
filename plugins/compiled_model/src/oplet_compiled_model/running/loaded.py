"""A model as a CompiledModel has it until it is closed, and the checks of what is asked of its signatures."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from oplet.toolkit import SubgraphRunner
from oplet_compiled_model.errors import INVALID, NOT_FOUND, OUT_OF_BOUNDS, CompiledModelError
from oplet_compiled_model.running.buffer_runner import BufferRunner
from oplet_compiled_model.running.signatures import Signature, signatures_of
from oplet_compiled_model.tensor_buffer import TensorBuffer

if TYPE_CHECKING:
    from oplet import Delegate, Interpreter, Tensor

__all__ = ["Loaded", "check_shape", "entry_of", "index_of_name"]

#: Runs one signature on the buffers of its inputs and outputs.
Run = Callable[[list[TensorBuffer], list[TensorBuffer]], None]

_NO_SIGNATURE = "Signature index is out of range of signature keys"


class Loaded:
    """The state of an open CompiledModel.

    Attributes:
        interpreter: the interpreter that runs the model.
        delegates: the delegates for the hardware that was asked for.
        signatures: the signatures.
        lock: held while the model runs or changes.
        runs: the function that runs a signature, by the signature's index; filled by `run_of`.
    """

    def __init__(self, interpreter: Interpreter, delegates: list[Delegate]) -> None:
        self.interpreter = interpreter
        self.delegates = delegates
        self.signatures = signatures_of(interpreter)
        self.lock = threading.RLock()
        self.runs: dict[int, Run] = {}
        self._runners: dict[int, BufferRunner] = {}

    def run_of(self, index: int) -> Run:
        """Return the function that runs a signature, given lists of input and output buffers, and store it in `runs`.

        Raises:
            CompiledModelError: there is no signature of this index.
        """
        signature = self.signature(index, "Failed to invoke the compiled model")
        run = self.runs[index] = partial(self.runner(signature).run, signature)
        return run

    def runner(self, signature: Signature) -> BufferRunner:
        """Return the BufferRunner of a signature's subgraph; it is made at the first call."""
        found = self._runners.get(signature.subgraph)
        if found is None:
            with self.lock:
                made = BufferRunner(SubgraphRunner(self.interpreter, signature.subgraph), self.lock)
                found = self._runners.setdefault(signature.subgraph, made)
        return found

    def tensor(self, signature: Signature, index: int) -> Tensor:
        """Return the tensor with this index in a signature's subgraph.

        Raises:
            CompiledModelError: the signature is invalid: it names tensors that the subgraph does not have.
        """
        if signature.fault:
            raise CompiledModelError("Failed to describe the signature", signature.fault, code=NOT_FOUND)
        return self.interpreter.subgraphs[signature.subgraph].tensors[index]

    def index_of(self, key: str) -> int:
        """Return the index of the signature with this key, 0 for the key ""; -1 if there is none."""
        if not isinstance(key, str):
            raise TypeError(f"A signature's key is a str, not a {type(key).__name__}.")
        keys = [signature.key for signature in self.signatures]
        return keys.index(key) if key in keys else -1 if key else 0

    def named(self, key: str, *, inline: bool = False) -> Signature:
        """Return a signature by its key.

        `inline` puts the missing key into the error's first line, in place of a line of its own.

        Raises:
            CompiledModelError: there is no signature of this key.
        """
        index = self.index_of(key)
        if index >= 0:
            return self.signatures[index]
        text = f"Signature not found: {key}"
        if inline:
            raise CompiledModelError(text, code=NOT_FOUND)
        raise CompiledModelError("Failed to create a tensor buffer", text, code=NOT_FOUND)

    def signature(self, index: int, message: str = "Failed to find a signature") -> Signature:
        """Return a signature by its index; `message` begins the error message.

        Raises:
            CompiledModelError: there is no signature of this index.
        """
        if not 0 <= operator.index(index) < len(self.signatures):
            raise CompiledModelError(message, f"{_NO_SIGNATURE}: {index} of {len(self.signatures)}", code=OUT_OF_BOUNDS)
        return self.signatures[index]


def entry_of(indices: list[int], place: int, role: str) -> int:
    """Return `indices[place]`, the tensor index of an input or output; `role` ("Input" or "Output") is for the message.

    Raises:
        CompiledModelError: `place` is out of range.
    """
    if not 0 <= operator.index(place) < len(indices):
        raise CompiledModelError(
            f"Failed to find an {role.lower()}", f"{role} index out of range: {place} of {len(indices)}", code=OUT_OF_BOUNDS
        )
    return indices[place]


def index_of_name(names: list[str], indices: list[int], name: str, role: str) -> int:
    """Return the element of `indices` at the position of `name` in `names`; `role` ("Input" or "Output") is for the message.

    Raises:
        CompiledModelError: there is no such name.
    """
    if name not in names:
        raise CompiledModelError("Failed to create a tensor buffer", f"{role} tensor not found: {name}", code=NOT_FOUND)
    return indices[names.index(name)]


def check_shape(shape: tuple[int, ...], tensor: Tensor, strict: bool) -> None:
    """Check an input's new shape.

    Raises:
        CompiledModelError: the shape is empty or has a size below 1; or, with `strict`, it changes a dimension that is not -1 in
            the model.
    """
    free, why = tensor.shape_signature, ""
    if not strict and not shape:
        why = "New shape must not be empty."
    elif not strict and min(shape) < 1:
        why = "Dimensions must be positive."
    elif strict and len(shape) != len(free):
        why = "New shape rank does not match current shape rank."
    elif strict and any(new != now and (each != -1 or new < 1) for new, now, each in zip(shape, tensor.shape, free)):
        why = "New shape is not compatible with current shape."
    if why:
        allowed = f" strict=True allows {list(free)}, with any size for -1." if strict else ""
        raise CompiledModelError("Failed to resize an input", f"{why} It is {list(shape)} for {tensor}.{allowed}", code=INVALID)
