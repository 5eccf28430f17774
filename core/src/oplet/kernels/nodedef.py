"""Parser of NodeDef, the protobuf message with a TensorFlow operator's name and attributes.

Format: tensorflow/core/framework/{node_def,attr_value,tensor_shape}.proto. The work is bounded by the number of bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final

from oplet.schema.protobuf import fields, signed, varints

__all__ = ["NodeDef", "Shape", "Type", "read_node_def"]

#: A shape of a NodeDef: sizes, -1 where one is unknown; None for an unknown rank.
Shape = tuple[int, ...] | None


class Type(int):
    """A TensorFlow DataType number; a type of its own because integer attributes are plain `int`."""


@dataclass(frozen=True)
class NodeDef:
    """A parsed NodeDef: operator, node name and attributes.

    Attributes:
        op: the operator's name.
        name: the node's name.
        attributes: values by name: bytes, int, float, bool, `Type`, `Shape`, or lists of these; a tensor or function stays
            serialized, as a pair ("tensor", bytes) or ("func", bytes).
    """

    op: str
    name: str
    attributes: dict[str, Any] = field(default_factory=dict)


def read_node_def(data: bytes) -> NodeDef:
    """Parse a serialized NodeDef.

    Raises:
        ValueError: the bytes are no NodeDef; the message names the byte position, without a full stop, to stand within a
            sentence.
    """
    op = name = ""
    attributes: dict[str, Any] = {}
    for number, value in fields(data):
        if number == 1:
            name = _text(value)
        elif number == 2:
            op = _text(value)
        elif number == 5:
            entry = dict(fields(_bytes(value)))
            attributes[_text(entry.get(1, b""))] = _attribute(_bytes(entry.get(2, b"")))
    return NodeDef(op, name, attributes)


def _attribute(data: bytes) -> Any:
    """Parse a serialized AttrValue; as in protobuf the last field wins, and an empty message is None."""
    found: Any = None
    for number, value in fields(data):
        if number == 1:
            found = _list(_bytes(value))
        elif number in _SINGLE:
            found = _SINGLE[number](value)
    return found


def _list(data: bytes) -> list[Any]:
    found: list[Any] = []
    for number, value in fields(data):
        if number in _PACKED and isinstance(value, bytes):
            found += _PACKED[number](value)
        elif (read := _SINGLE.get(10 if number == 9 else number)) is not None:
            found.append(read(value))
    return found


def _shape(value: Any) -> Shape:
    sizes = []
    for number, part in fields(_bytes(value)):
        if number == 3 and part:
            return None
        if number == 2:
            sizes.append(_integer(dict(fields(_bytes(part))).get(1, 0)))
    return tuple(sizes)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError(f"the number {value} stands where a message belongs")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise ValueError("a name is not UTF-8") from None


def _integer(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("bytes stand where a number belongs")
    return signed(value)


def _float(value: int | bytes) -> float:
    if isinstance(value, int) or len(value) != 4:
        raise ValueError("a float has 4 bytes")
    number: float = struct.unpack("<f", value)[0]
    return number


def _floats(data: bytes) -> list[float]:
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes of floats are not a multiple of 4")
    return list(struct.unpack(f"<{len(data) // 4}f", data))


#: How a value is read, by its field in AttrValue.
_SINGLE: Final[dict[int, Any]] = {
    2: _bytes,
    3: _integer,
    4: _float,
    5: lambda value: bool(_integer(value)),
    6: lambda value: Type(_integer(value)),
    7: _shape,
    8: lambda value: ("tensor", _bytes(value)),
    10: lambda value: ("func", _bytes(value)),
}

#: How a packed list of values is read, by its field in ListValue.
_PACKED: Final[dict[int, Any]] = {
    3: lambda data: map(_integer, varints(data)),
    4: _floats,
    5: lambda data: map(bool, varints(data)),
    6: lambda data: map(Type, varints(data)),
}
