"""Custom options of flex nodes, as TensorFlow's converter writes them: the operator's name and its NodeDef."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from flatbuffers import flexbuffers

__all__ = ["flex_options"]


def flex_options(op: str, attributes: Mapping[str, Any]) -> bytes:
    """The options of an operator with these attributes: strings, bytes, integers, floats, Booleans, or lists of them."""
    node = _field(1, b"node") + _field(2, op.encode())
    for name, value in attributes.items():
        written = _field(1, b"".join(map(_single, value))) if isinstance(value, list) else _single(value)
        node += _field(5, _field(1, name.encode()) + _field(2, written))
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String(op)
        builder._WriteBlob(node, append_zero=True, type_=flexbuffers.Type.STRING)
    return bytes(builder.Finish())


def _single(value: Any) -> bytes:
    if isinstance(value, bool):
        return _varint(5 << 3) + _varint(value)
    if isinstance(value, int):
        return _varint(3 << 3) + _varint(value & 0xFFFFFFFFFFFFFFFF)
    if isinstance(value, float):
        return bytes([4 << 3 | 5]) + struct.pack("<f", value)
    return _field(2, value.encode() if isinstance(value, str) else value)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
