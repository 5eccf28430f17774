"""Resources, i.e. state that outlives an invoke without being a tensor: resource variables and hash tables.

A tensor of type RESOURCE (or INT32) holds a resource's number. Numbers: tflite/kernels/var_handle.cc counts the pairs of container
and name in the order of the nodes, over all subgraphs; a hash table's number is its node's `table_id`. As in
tflite/experimental/resource, both kinds share one range of numbers.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numpy.typing import NDArray

from oplet import Context, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.limits import Kept

__all__ = [
    "HANDLES",
    "MAPPINGS",
    "TABLES",
    "VARIABLE",
    "HashTable",
    "Variable",
    "VariableNumbers",
    "check_handle",
    "find",
    "find_or_make",
    "table_handle",
    "variable_number",
]

#: The types of tensors that hold the number of a variable, and of a hash table.
HANDLES = (TensorType.RESOURCE, TensorType.INT32)
TABLES = (TensorType.RESOURCE,)
#: The value type of a hash table by its key type.
MAPPINGS = {TensorType.INT64: TensorType.STRING, TensorType.STRING: TensorType.INT64}

#: Bytes of a variable, with its entry among the resources, besides its value.
VARIABLE = 400
#: The most of a variable's name that a message shows.
_LONGEST = 100


class Variable:
    """A resource variable: a value that VAR_HANDLE names and ASSIGN_VARIABLE sets.

    Attributes:
        type: the type of its value.
        value: the value that was assigned last; None until one is.
    """

    kind = "variable"

    def __init__(self) -> None:
        self.type = TensorType.FLOAT32
        self.value: NDArray[Any] | None = None


class VariableNumbers(dict[tuple[str, str], int]):
    """The handles of an interpreter's resource variables, by container and name."""

    def resource_variables(self, resources: dict[Any, Any]) -> dict[str, Variable]:
        """Return the interpreter's variables by name, for `Interpreter.get_variables`; those that have no value yet are created."""
        held = {
            f"{container}/{name}" if container else name: resources.setdefault(number, Variable())
            for (container, name), number in self.items()
        }
        return {name: variable for name, variable in held.items() if isinstance(variable, Variable)}


class HashTable:
    """A hash table resource, which is filled once by HASHTABLE_IMPORT.

    Attributes:
        key_type: INT64 or STRING.
        value_type: the other of the two.
        entries: the values by their keys; None until HASHTABLE_IMPORT fills it.
        kept: charges the bytes of the entries against the memory limit.
    """

    kind = "hash table"

    def __init__(self, key_type: TensorType, value_type: TensorType) -> None:
        self.key_type = key_type
        self.value_type = value_type
        self.entries: dict[Any, Any] | None = None
        self.kept = Kept()

    def check(self, keys: Tensor, values: Tensor) -> None:
        """Check that key and value tensors have the hash table's types.

        Raises:
            EnsureError: a tensor has another type.
        """
        ensure(
            (keys.type, values.type) == (self.key_type, self.value_type),
            f"the table maps {self.key_type.name} to {self.value_type.name}; it is used with the keys {keys} and the values {values}.",
        )


Resource = TypeVar("Resource", Variable, HashTable)


def variable_number(context: Context, container: str, name: str) -> int:
    """Return the integer handle of a resource variable; the first use of a name assigns a new one."""
    numbers = context.resources.setdefault("variable numbers", VariableNumbers())
    return int(numbers.setdefault((container, name), len(numbers)))


def check_handle(tensor: Tensor) -> None:
    """Check that a tensor can hold a variable's integer handle.

    Raises:
        EnsureError: the tensor has another type, or not exactly one value.
    """
    ensure_type(tensor, *HANDLES)
    ensure(tensor.size == 1, f"{tensor} has {tensor.size} values; a handle is one.")


def table_handle(tensor: Tensor) -> None:
    """Check that a tensor can hold a hash table's integer handle.

    Raises:
        EnsureError: the tensor has another type, or its shape is not [1].
    """
    ensure_type(tensor, *TABLES)
    ensure(tensor.shape == (1,), f"{tensor} is of shape {list(tensor.shape)}; the handle of a table is of shape [1].")


def find(context: Context, handle: NDArray[Any], kind: type[Resource]) -> Resource:
    """Return the resource that a handle tensor's value refers to.

    Raises:
        EnsureError: there is no resource of this number and kind.
    """
    number = handle.item()
    found = context.resources.get(number)
    if kind is Variable:
        ensure(found is None or isinstance(found, kind), f"the handle holds {number!r}, which is no variable.")
        ensure(found is not None and found.value is not None, lambda: _never_assigned(context, number))
    ensure(isinstance(found, kind), f"the handle holds {number!r}, there is no {kind.kind} of that number yet.")
    return found  # type: ignore[return-value]


def _never_assigned(context: Context, number: int) -> str:
    """Return the error message for reading a variable that was never assigned, as when weights were not saved with the model."""
    numbers = context.resources.get("variable numbers", {})
    name = next((name for (_, name), its_number in numbers.items() if its_number == number), "")
    return (
        f"the variable {number}{f' ({name[:_LONGEST]!r})' if name else ''} is read before anything is assigned to it; run the signature that "
        "assigns it first, or, if the model has none, convert it again from a model whose variables have their values."
    )


def find_or_make(context: Context, number: int, made: Resource) -> Resource:
    """Return the resource with this handle; register `made` under the handle if there is none yet.

    Raises:
        EnsureError: a resource of the other kind has the number.
    """
    found = context.resources.setdefault(number, made)
    ensure(type(found) is type(made), f"the resource {number} is no {made.kind}, it is a {found.kind} already.")
    return found  # type: ignore[no-any-return]
