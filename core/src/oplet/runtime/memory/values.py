"""Values of tensors: checks of those that callers pass; those that delegates keep in buffers of their own, which are copied when others
read them; computed constants, and letting go of them; and variables, read and set by the program: what on-device training has learnt.

Rules of buffer handles: tflite/core/subgraph.cc of google-ai-edge/LiteRT (SetBufferHandle, EnsureTensorDataIsReadable).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from oplet.errors import DelegateError, OpletError, StateError, TensorError, failures, text_of
from oplet.ops.context import Context, Node
from oplet.ops.node import Thunk
from oplet.ops.strings import string_array
from oplet.ops.tensor import Array, Tensor, tensor_type
from oplet.runtime.subgraph import Subgraph, present_signature
from oplet.schema.enums import TensorType
from oplet.texts import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet.delegates.delegate import Delegate

__all__ = [
    "HeldVariable",
    "Variables",
    "as_tensor_value",
    "check_strict",
    "ensure_readable",
    "free_handle",
    "free_handles",
    "let_go",
    "set_buffer_handle",
    "variables_of",
    "weakly",
    "with_readable_inputs",
]


def ensure_readable(context: Context, tensor: Tensor) -> None:
    """Copy a tensor's value from its delegate's buffer to `tensor.data`, if the buffer's is newer (`data_is_stale`).

    Raises:
        DelegateError: the tensor is stale and has no buffer, or the delegate cannot copy it.
    """
    if not tensor.data_is_stale:
        return
    if tensor.delegate is None or tensor.buffer_handle is None:
        raise DelegateError(f"The data of {tensor} is stale, and no delegate has a buffer with its value.")
    try:
        tensor.delegate.copy_from_buffer_handle(context, tensor.buffer_handle, tensor)
    except OpletError:
        raise
    except failures() as error:
        raise DelegateError(
            f"{tensor.delegate.name} cannot copy the data of {tensor} from its buffer: {text_of(error)}."
        ) from error
    tensor.data_is_stale = False


def with_readable_inputs(context: Context, node: Node, thunk: Thunk) -> Thunk:
    """Return a function that first copies inputs that are newer in other delegates' buffers, then runs the node; `thunk` itself without
    such inputs.
    """
    foreign: list[Tensor] = []
    for tensor in node.inputs:
        if tensor is not None and tensor.delegate is not None and tensor.delegate is not node.delegate:
            foreign.append(tensor)
    if not foreign:
        return thunk

    def run() -> None:
        for tensor in foreign:
            if tensor.data_is_stale:
                ensure_readable(context, tensor)
        thunk()

    return run


def set_buffer_handle(context: Context, tensor: Tensor, handle: Any, delegate: Delegate) -> None:
    """Bind a delegate's buffer to a tensor; the buffer that was bound before is freed.

    Args:
        context: the context of the tensor's subgraph.
        tensor: the tensor.
        handle: the delegate's handle of the buffer; None to bind no buffer.
        delegate: the delegate.

    Raises:
        DelegateError: the tensor belongs to another delegate.
    """
    if tensor.delegate is not None and tensor.delegate is not delegate:
        raise DelegateError(f"{delegate.name} cannot take {tensor}: it belongs to {tensor.delegate.name}.")
    tensor.delegate = delegate
    free_handle(context, tensor)
    tensor.buffer_handle = handle


def free_handle(context: Context, tensor: Tensor) -> None:
    """Have the tensor's delegate free the buffer that is bound to it, if there is one.

    Raises:
        DelegateError: the delegate failed; the buffer is not bound any more.
    """
    if tensor.delegate is not None and tensor.buffer_handle is not None:
        handle, tensor.buffer_handle = tensor.buffer_handle, None
        tensor.data_is_stale = False
        try:
            tensor.delegate.free_buffer_handle(context, handle)
        except OpletError:
            raise
        except failures() as error:
            raise DelegateError(
                f"{tensor.delegate.name} cannot free its buffer {handle!r} of {tensor}: {text_of(error)}."
            ) from error


def free_handles(context: Context, tensors: Iterable[Tensor]) -> None:
    """Have delegates free the buffers of these tensors, which then belong to none; the first error is raised at the end."""
    failure: OpletError | None = None
    for tensor in tensors:
        try:
            free_handle(context, tensor)
        except OpletError as error:
            failure = failure or error
        tensor.delegate = None
        tensor.data_is_stale = False
    if failure is not None:
        raise failure


#: Constants of fewer bytes are not let go.
_LARGE = 1 << 16


def let_go(
    subgraph: Subgraph, reader: Node, tensor: Tensor, position: int, readers_of: Callable[[Tensor], Sequence[Node]]
) -> None:
    """Release a constant that was computed or unpacked if it is large, this node is its last reader, and every reader was folded (run
    ahead) or caches what it made of it (`Node.cached`). It is computed again if it is read again.

    Constants that kernels in C or delegates read are not released, as their addresses may be in use.

    Args:
        subgraph: the subgraph.
        reader: a node that is prepared, or that such a node absorbs.
        tensor: one of its inputs.
        position: the position of the prepared node in the plan.
        readers_of: returns the nodes that read a tensor.
    """
    if tensor.nbytes < _LARGE or subgraph.last_use.get(tensor.index) != position or subgraph.delegated.kernels:
        return
    readers = readers_of(tensor) if tensor.index in subgraph.read_again else (reader,)
    if all(_has_read(subgraph, each, tensor) for each in readers):
        tensor.let_go()


def _has_read(subgraph: Subgraph, node: Node, tensor: Tensor) -> bool:
    """Return whether a node needs a constant no more: it was folded (run ahead), or keeps what it made of the constant."""
    registration = node.registration
    if registration is None or registration.library:
        return False
    return node.index in subgraph.folded or node.has_made_of(tensor)


def weakly(method: Callable[..., None], **arguments: Any) -> Callable[[], None]:
    """Return a function that calls a bound method while its object is alive, and does not keep the object alive."""
    found = weakref.WeakMethod(method)

    def call() -> None:
        if (alive := found()) is not None:
            alive(**arguments)

    return call


def as_tensor_value(tensor: Tensor, value: Any) -> NDArray[Any]:
    """Return the value as an array that fits the tensor exactly.

    Raises:
        TensorError: its type, number of dimensions or a dimension differs.
    """
    if type(value) is np.ndarray and value.shape == tensor.shape and value.dtype == tensor.dtype and not value.dtype.hasobject:
        return value  # the usual case
    try:
        array = string_array(value) if tensor.type is TensorType.STRING else np.asarray(value)
    except failures() as error:  # lists of different lengths, objects whose __array__ fails
        raise TensorError(
            f"Cannot set tensor: Got a {type(value).__name__} that is no array ({text_of(error)}) but expected type {tensor.type.name} "
            f"for input {tensor.index}, name: {shown(tensor.name)} "
        ) from error
    if tensor.type is TensorType.STRING and array.dtype.hasobject:
        array = _strings(tensor, array)
    elif array.dtype != tensor.dtype:
        raise TensorError(
            f"Cannot set tensor: Got value of type {_type_name(array)} but expected type {tensor.type.name} "
            f"for input {tensor.index}, name: {shown(tensor.name)} "
        )
    if array.ndim != tensor.ndim:
        raise TensorError(
            f"Cannot set tensor: Dimension mismatch. Got {array.ndim} but expected {tensor.ndim} for input {tensor.index}. The tensor is {tensor}."
        )
    for dimension, (got, expected) in enumerate(zip(array.shape, tensor.shape)):
        if got != expected:
            raise TensorError(
                f"Cannot set tensor: Dimension mismatch. Got {got} but expected {expected} for dimension {dimension} "
                f"of input {tensor.index}. The tensor is {tensor}."
            )
    return array


def _strings(owner: Tensor | str, array: NDArray[Any]) -> NDArray[Any]:
    result = np.empty(array.shape, object)
    if set(map(type, array.ravel().tolist())) <= {bytes}:
        result[...] = array
        return result
    for position, item in enumerate(array.ravel().tolist()):
        if isinstance(item, str):
            try:
                item = item.encode()
            except UnicodeEncodeError as error:
                raise TensorError(
                    f"Cannot set tensor: element {position} of the value for {owner} has no form in UTF-8 ({error})."
                ) from error
        elif not isinstance(item, bytes):
            raise TensorError(
                f"Cannot set tensor: element {position} of the value for {owner} is a {type(item).__name__}, not str or bytes."
            )
        result.reshape(-1)[position] = bytes(item)
    return result


def _type_name(array: NDArray[Any]) -> str:
    """LiteRT's name of an array's type."""
    try:
        if not array.dtype.isnative:
            return str(array.dtype)
        return tensor_type(array.dtype).name
    except ValueError:
        return f"NOTYPE ({array.dtype})"


def check_strict(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Check that a shape differs from the tensor's shape signature only in dimensions that are -1 there.

    Raises:
        StateError: the shape differs in other dimensions, or in rank.
    """
    if len(shape) != len(tensor.shape):
        raise StateError(
            f"Attempting to resize {tensor} to the shape {list(shape)}, of another rank. ResizeInputTensorStrict only allows "
            "mutating unknown dimensions identified by -1."
        )
    for dimension, (stated, wanted) in enumerate(zip(present_signature(tensor), shape)):
        if stated not in (-1, wanted):
            raise StateError(
                f"Attempting to resize dimension {dimension} of tensor {tensor.index} with value {stated} to {wanted}. "
                "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
            )


#: The most names that a message lists.
_LISTED = 10


class HeldVariable(Protocol):
    """A resource variable of a package: an object with these attributes, which its kernels read and write.

    Attributes:
        type: the type of its value.
        value: its value; None until something is assigned.
    """

    type: TensorType
    value: NDArray[Any] | None


def variables_of(resources: Mapping[Any, Any]) -> dict[str, HeldVariable]:
    """Return the variables of an interpreter, by name.

    Args:
        resources: the interpreter's resources (`Context.resources`). A package that keeps variables there has among them an object with a
            method `resource_variables(resources)`, which returns them by their names.
    """
    found: dict[str, HeldVariable] = {}
    for each in list(resources.values()):
        if callable(named := getattr(each, "resource_variables", None)):
            found.update(named(resources))
    return found


class Variables:
    """Access to the variables of an interpreter; a base class of `Interpreter`, which has its runtime in `_runtime`."""

    _runtime: Any

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied, as a program that sends its interpreter to other processes meant something else."""
        raise TypeError(
            f"An interpreter cannot be pickled or copied: it holds memory, threads and kernels of this process. For {self._runtime.model.name} "
            "make one in each process or thread, or use oplet.Predictor, which can be pickled and opens its own in each of them."
        )

    def reset_all_variables(self) -> None:
        """Set all variable tensors to zero."""
        self._runtime.reset_variables()

    def get_variables(self) -> dict[str, NDArray[Any]]:
        """Return copies of the model's resource variables (VAR_HANDLE) by name; those that nothing was assigned to are left out.

        They hold what a training signature has learnt. Variable tensors are not included; `get_tensor` reads them.
        """
        return {name: np.array(each.value) for name, each in self._held_variables().items() if each.value is not None}

    def set_variables(self, values: Mapping[str, Any]) -> None:
        """Set resource variables to values that `get_variables` returned, so that the model continues from there.

        Args:
            values: an array for each name, of the type and shape of the variable's value if it has one.

        Raises:
            TensorError: the model has no such variable, or a value is no array, or of another type or shape; nothing is set then.
        """
        held, found = self._held_variables(), list[tuple[HeldVariable, TensorType, Array]]()
        if not isinstance(values, Mapping):
            raise TensorError(f"Variables are set by a mapping of their names to values, not by a {type(values).__name__}.")
        for name, value in values.items():
            what = f"the variable '{shown(str(name))}'"
            if name not in held:
                known = ", ".join(f"'{shown(each)}'" for each in [*held][:_LISTED]) or "none"
                raise TensorError(f"{self._runtime.model.name} has no variable '{shown(str(name))}'; it has {known}.")
            try:
                array = np.array(string_array(value))
                type_ = tensor_type(array.dtype)
            except failures() as error:  # lists of different lengths, types that no tensor has
                raise TensorError(f"A {type(value).__name__} is no value for {what}: {text_of(error)}") from error
            if array.dtype.hasobject:
                array = _strings(what, array)
            now = held[name].value
            if now is not None and (now.shape, now.dtype) != (array.shape, array.dtype):
                raise TensorError(
                    f"The variable '{shown(name)}' of {self._runtime.model.name} is of type {now.dtype} and shape {list(now.shape)}; it is "
                    f"set to an array of {array.dtype} {list(array.shape)}."
                )
            found.append((held[name], type_, array))
        for variable, type_, array in found:
            variable.type, variable.value = type_, array

    def _held_variables(self) -> dict[str, HeldVariable]:
        self._runtime.ensure_open()
        self._runtime.ensure_idle()
        return variables_of(self._runtime.session.resources)
