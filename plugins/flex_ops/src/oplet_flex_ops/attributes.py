"""Typed access to a Flex node's attributes: a missing, mistyped or out-of-bounds one raises an error that names it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from oplet import Node, Tensor, TensorType, ensure
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import NodeDef, Shape, Type, read_node_def, tensorflow_node
from oplet.schema.flexbuffers import read_flexbuffer

__all__ = ["TYPES", "Attributes", "attributes_of", "checked_attributes"]

#: The element types of tensors by TensorFlow's DataType.
TYPES = {
    1: TensorType.FLOAT32,
    2: TensorType.FLOAT64,
    3: TensorType.INT32,
    4: TensorType.UINT8,
    5: TensorType.INT16,
    6: TensorType.INT8,
    7: TensorType.STRING,
    8: TensorType.COMPLEX64,
    9: TensorType.INT64,
    10: TensorType.BOOL,
    14: TensorType.BFLOAT16,
    17: TensorType.UINT16,
    18: TensorType.COMPLEX128,
    19: TensorType.FLOAT16,
    20: TensorType.RESOURCE,
    21: TensorType.VARIANT,
    22: TensorType.UINT32,
    23: TensorType.UINT64,
}


def checked_attributes(node: Node, inputs: int, outputs: int = 1) -> Attributes:
    """Check the numbers of inputs and outputs, and return the node's attributes, parsed once and cached.

    Raises:
        EnsureError: the node has another number of inputs or outputs, or its NodeDef is invalid.
    """
    ensure_operands(node, inputs, outputs)
    return attributes_of(node)


def attributes_of(node: Node) -> Attributes:
    """Return the node's attributes, parsed once and cached."""
    return node.cached("attributes", (), lambda: Attributes(node))


class Attributes:
    """A TensorFlow node's attributes: from its NodeDef if it is named `Flex...`; else, for ops that the converter does not write
    as Flex, from a FlexBuffers map.

    The `default` of a method is the value for an attribute that is not stored, as TensorFlow defines it; without a default, a
    missing attribute is an error.

    Raises:
        EnsureError: the custom options hold no NodeDef; each method: the attribute is missing, of another kind, or out of bounds.
    """

    def __init__(self, node: Node) -> None:
        #: The kind of a value that is an element type, and the types by their numbers.
        self._type_numbers: tuple[Any, Mapping[int, TensorType]] = (Type, TYPES)
        if not node.op_name.startswith("Flex"):
            self._type_numbers = int, {int(each): each for each in TYPES.values()}
            self.op = node.op_name
            self._node_def = NodeDef(self.op, "", _read_map(node))
            return
        self.op, data = tensorflow_node(node)
        try:
            self._node_def = read_node_def(data)
        except ValueError as error:
            ensure(False, f"the {len(data)} bytes of its NodeDef cannot be read: {error}.")

    @property
    def node_def(self) -> NodeDef:
        """The parsed NodeDef."""
        return self._node_def

    def integer(self, name: str, *, least: int | None = None, most: int | None = None, default: int | None = None) -> int:
        """Return the integer attribute `name`, checked against its bounds."""
        value = self._get(name, default)
        self._check(type(value) is int, name, value, "an integer")
        self._check(least is None or value >= least, name, value, f"at least {least}")
        self._check(most is None or value <= most, name, value, f"at most {most}")
        return int(value)

    def integers(self, name: str, *, count: int | None = None, default: Sequence[int] | None = None) -> list[int]:
        """Return the attribute `name`, a list of integers; of length `count` if given."""
        value = self._get(name, None if default is None else list(default))
        self._check(isinstance(value, list) and all(type(item) is int for item in value), name, value, "a list of integers")
        self._check(count is None or len(value) == count, name, value, f"a list of {count} integers")
        return list(value)

    def number(self, name: str, *, default: float | None = None) -> float:
        """Return the finite float attribute `name`."""
        value = self._get(name, default)
        self._check(isinstance(value, float) and math.isfinite(value), name, value, "a finite number")
        return float(value)

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """Return the Boolean attribute `name`."""
        value = self._get(name, default)
        self._check(isinstance(value, bool), name, value, "true or false")
        return bool(value)

    def raw(self, name: str, *, default: bytes | None = None) -> bytes:
        """Return the string attribute `name` as bytes."""
        value = self._get(name, default)
        self._check(isinstance(value, bytes), name, value, "a string")
        return bytes(value)

    def text(self, name: str, *choices: str, default: str | None = None) -> str:
        """Return the string attribute `name`, which must be one of `choices` if any are given."""
        value = self.raw(name, default=None if default is None else default.encode()).decode("utf-8", "replace")
        self._check(not choices or value in choices, name, value, f"one of {', '.join(choices)}")
        return value

    def type(self, name: str, *allowed: TensorType, default: TensorType | None = None) -> TensorType:
        """Return the element type attribute `name`, which must be one of `allowed` if any are given."""
        value = self._get(name, default)
        if isinstance(value, TensorType):
            return value
        known = self._type_numbers
        self._check(type(value) is known[0] and int(value) in known[1], name, value, "an element type that .tflite files know")
        found = known[1][int(value)]
        self._check(not allowed or found in allowed, name, found.name, f"one of {', '.join(each.name for each in allowed)}")
        return found

    def types(self, name: str, *, default: Sequence[TensorType] | None = None) -> list[TensorType]:
        """Return the attribute `name`, a list of element types."""
        if default is not None and name not in self._node_def.attributes:
            return list(default)
        value = self._get(name, None)
        self._check(
            isinstance(value, list) and all(isinstance(item, Type) and int(item) in TYPES for item in value),
            name, value, "a list of element types that .tflite files know",
        )  # fmt: skip
        return [TYPES[int(item)] for item in value]

    def shape(self, name: str) -> Shape:
        """Return the shape attribute `name`: sizes, -1 for unknown ones; None for unknown rank."""
        value = self._get(name, None, required=False)
        self._check(name in self._node_def.attributes and (value is None or isinstance(value, tuple)), name, value, "a shape")
        return value if value is None else tuple(value)

    def ensure_type(self, name: str, tensor: Tensor) -> None:
        """Raise an error unless the type attribute `name` is the tensor's type."""
        declared = self.type(name)
        ensure(
            declared == tensor.type,
            f"the attribute '{name}' of {self.op} is {declared.name}, but {tensor} is {tensor.type.name}.",
        )

    def _get(self, name: str, default: Any, *, required: bool = True) -> Any:
        value = self._node_def.attributes.get(name, default)
        if required and value is None:
            ensure(False, f"the attribute '{name}' of {self.op} is missing.")
        # an attribute that is a list without elements says nothing about the kind of its elements
        return value

    def _check(self, holds: bool, name: str, value: Any, wanted: str) -> None:
        if not holds:
            ensure(False, f"the attribute '{name}' of {self.op} is {value!r:.60}; it must be {wanted}.")


def _read_map(node: Node) -> dict[str, Any]:
    """Read the attributes of an operator without a NodeDef, stored as a FlexBuffers map in its custom options.

    Element types are stored as TensorType numbers of the .tflite schema, not as TensorFlow's DataType. Format:
    CreateCustomOpCustomOptions in tensorflow/compiler/mlir/lite/flatbuffer_export.cc.
    """
    try:
        found = read_flexbuffer(node.custom_options, text=False) if node.custom_options else {}
    except ValueError as error:
        ensure(False, f"the {len(node.custom_options)} bytes of its custom options are not a FlexBuffer ({error}).")
    ensure(isinstance(found, dict), lambda: f"its custom options hold a {type(found).__name__}; attributes are a map.")
    return dict(found)
