"""A node's options: a FlexBuffers map, or the attributes of a NodeDef where the op is named as TensorFlow's flex ops are.

The NodeDef's attributes are those of the map, but for types, which kernels take from tensors.

Format: tensorflow/core/framework/{node_def,attr_value}.proto
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from oplet import Node, ensure
from oplet.kernels.options import tensorflow_node
from oplet.schema.flexbuffers import read_flexbuffer
from oplet.schema.protobuf import fields, signed, varints

__all__ = ["FLEX", "options_of"]

#: What the names of TensorFlow's operators in `.tflite` files begin with.
FLEX: Final = "Flex"
#: The field of a NodeDef that holds attributes, and of an AttrValue that holds a list.
_ATTRIBUTES, _LIST = 5, 1


def options_of(node: Node, *, text: bool = True) -> dict[str, Any]:
    """Return a node's custom options by name.

    Args:
        text: whether strings are read as UTF-8; else they are bytes.

    Raises:
        EnsureError: the custom options are neither a NodeDef nor a FlexBuffers map.
    """
    if not node.op_name.startswith(FLEX):
        return node.custom_map() if text else _map_of_bytes(node)
    try:
        return {name: _value(value, text) for name, value in _attributes(tensorflow_node(node)[1])}
    except ValueError as error:
        ensure(False, f"its NodeDef is damaged ({error}).")
    return {}


def _map_of_bytes(node: Node) -> dict[str, Any]:
    try:
        options: Any = read_flexbuffer(node.custom_options, text=False)
    except ValueError as error:
        ensure(False, f"the {len(node.custom_options)} bytes of its custom options are not a FlexBuffer ({error}).")
    return options if isinstance(options, dict) else {}


def _attributes(data: bytes) -> list[tuple[str, bytes]]:
    """Return the names of a NodeDef's attributes and their AttrValues."""
    found = []
    for number, entry in fields(data):
        if number == _ATTRIBUTES and isinstance(entry, bytes):
            parts = dict(fields(entry))
            name, value = parts.get(1, b""), parts.get(2, b"")
            if isinstance(name, bytes) and isinstance(value, bytes):
                found.append((name.decode("utf-8", "replace"), value))
    return found


def _value(data: bytes, text: bool) -> Any:
    """Return what an AttrValue holds: a string, number or Boolean, or a list of these; None for anything else."""
    found = None
    for number, value in fields(data):
        if number == _LIST and isinstance(value, bytes):
            found = [_single(each, item, text) for each, item in _items(value)]
        elif number in _READERS:
            found = _single(number, value, text)
    return found


def _items(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return the items of a list, those of packed numbers one by one."""
    found: list[tuple[int, int | bytes]] = []
    for number, value in fields(data):
        if number == _INTEGER and isinstance(value, bytes):
            found += [(number, each) for each in varints(value)]
        else:
            found.append((number, value))
    return found


def _single(number: int, value: int | bytes, text: bool) -> Any:
    reader = _READERS.get(number)
    if reader is None:
        return None
    read = reader(value)
    return read.decode("utf-8", "replace") if text and isinstance(read, bytes) else read


def _integer(value: int | bytes) -> int | None:
    return signed(value) if isinstance(value, int) else None


def _float(value: int | bytes) -> float | None:
    return float(struct.unpack("<f", value)[0]) if isinstance(value, bytes) and len(value) == 4 else None


_STRING, _INTEGER, _FLOAT, _BOOLEAN = 2, 3, 4, 5
_READERS: dict[int, Callable[[int | bytes], Any]] = {
    _STRING: lambda value: value if isinstance(value, bytes) else None,
    _INTEGER: _integer,
    _FLOAT: _float,
    _BOOLEAN: lambda value: bool(value) if isinstance(value, int) else None,
}
