"""Reads the attributes of composites; a kernel declines a node with attributes that it does not know."""

from __future__ import annotations

import math
from typing import Any

from oplet import Node, TensorType, decline

__all__ = ["Attributes", "ensure_single"]

#: The prefix of the names of attributes that are tensors.
_TENSOR = "_TENSOR_V1_"


class Attributes:
    """The attributes of a composite node; if it has unknown attributes, its decomposition runs in place of the kernel.

    Args:
        node: the composite.
        known: the names of the attributes that the kernel supports.

    Attributes:
        values: the attributes that the node has.
    """

    def __init__(self, node: Node, *known: str) -> None:
        self.values: dict[str, Any] = dict(map(_read, node.composite_map().items()))
        unknown = sorted(self.values.keys() - set(known))
        if unknown:
            decline(
                f"the attribute{'s'[: len(unknown) > 1]} {', '.join(unknown)} {'are' if len(unknown) > 1 else 'is'} not known."
            )

    def number(self, name: str, *, least: float = -math.inf) -> float:
        """Return an attribute as a finite float of at least `least`; if it is not one, decline, so that the decomposition runs."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < least:
            decline(f"the attribute {name} is {value!r}, which is no number to compute with.")
        return float(value)

    def whole(self, name: str) -> int:
        """Return an attribute as an int; if it is not one, decline the node, so that its decomposition runs."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            decline(f"the attribute {name} is {value!r}, which is no whole number.")
        return value


def _read(entry: tuple[str, Any]) -> tuple[str, Any]:
    """Decode one attribute entry; litert-torch stores lists of numbers as a map with the tensor's values, shape and type."""
    name, value = entry
    if not name.startswith(_TENSOR) or not isinstance(value, dict):
        return entry
    data = value.get("TENSOR_DATA")
    return name.removeprefix(_TENSOR), [] if data is None else list(data)


def ensure_single(node: Node, inputs: int) -> None:
    """Decline the node, so that its decomposition runs, unless it has `inputs` inputs and one output, all float32."""
    given = [node.has_input(position) for position in range(len(node.inputs))]
    if len(given) != inputs or not all(given) or len(node.outputs) != 1:
        decline(f"it takes {inputs} inputs and gives one output; this node reads {sum(given)} and writes {len(node.outputs)}.")
    for tensor in (*node.inputs, *node.outputs):
        if tensor.type is not TensorType.FLOAT32:
            decline(f"{tensor} is of type {tensor.type.name}.")
