"""Resource variables: TensorFlow's own ops create and change them; variables of the builtin ops are found as well.

A tensor of type RESOURCE holds a `Variable` that an operator of this package made, or the number under which built-in operators
keep a variable in `Context.resources`: an object with the same two attributes. Converters write variables as built-in operators,
and the optimizer steps that update them as Flex operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from oplet import Context, Tensor, TensorType, ensure
from oplet.kernels.arrays import Array

__all__ = ["Held", "Variable", "find", "value_of", "variable_named"]


class Held(Protocol):
    """Protocol of a resource variable of this or another package.

    Attributes:
        type: the type of its value.
        value: its value; None until something is assigned.
    """

    type: TensorType
    value: Array | None


class Variable:
    """A resource variable of an interpreter: the type of its value, and the value, None until something is assigned."""

    def __init__(self, type: TensorType) -> None:
        self.type = type
        self.value: Array | None = None

    def __repr__(self) -> str:
        return f"Variable({self.type.name}, {'nothing' if self.value is None else list(self.value.shape)})"


class NamedVariables(dict[tuple[str, str], Variable]):
    """The variables of an interpreter that have names, by container and name."""

    def resource_variables(self, resources: Mapping[Any, Any]) -> dict[str, Variable]:
        """Return the variables by their names, for `Interpreter.get_variables`."""
        return {f"{container}/{name}" if container else name: variable for (container, name), variable in self.items()}


def variable_named(context: Context, container: str, name: str, type: TensorType) -> Variable:
    """Return the interpreter's resource variable of this name; create it if there is none.

    Raises:
        EnsureError: the variable has another type.
    """
    named: NamedVariables = context.resources.setdefault(("oplet-flex-ops", "variables"), NamedVariables())
    found = named.setdefault((container, name), Variable(type))
    ensure(found.type is type, f"the variable '{name:.60}' is of type {found.type.name}; a node uses it as {type.name}.")
    return found


def find(context: Context, handle: Tensor) -> Held:
    """Return the variable whose handle a tensor holds.

    Raises:
        EnsureError: the tensor holds no handle of a variable.
    """
    ensure(handle.size == 1, f"{handle} has {handle.size} values; a handle is one.")
    held = handle.data.item()
    if not isinstance(held, Variable) and isinstance(held, (int, np.integer)):
        held = context.resources.get(held)
    ensure(hasattr(held, "value") and hasattr(held, "type"), f"{handle} holds no variable.")
    found: Held = held
    return found


def value_of(context: Context, handle: Tensor, type: TensorType) -> Array:
    """Return the array of the variable whose handle a tensor holds, checked for its type; it may be changed in place.

    Raises:
        EnsureError: there is no such variable, nothing has been assigned, or its value is of another type.
    """
    variable = find(context, handle)
    ensure(variable.value is not None, f"the variable of {handle} is read before anything is assigned to it.")
    value: Array = variable.value  # type: ignore[assignment]
    ensure(variable.type is type, f"the variable of {handle} is of type {variable.type.name}, not {type.name}.")
    return value
