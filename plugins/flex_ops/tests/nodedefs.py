"""Flex nodes for tests: custom options with a NodeDef, as TensorFlow's converter writes them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from oplet import TensorType


def flex_options(op: str, attributes: Mapping[str, Any] = {}) -> bytes:
    """Custom options of a Flex node.

    Args:
        op: TensorFlow's name of the operator.
        attributes: values by name: int, float, bool, str or bytes, a TensorType, a shape as a tuple (None: unknown rank), or lists of them.
    """
    node = _field(1, op.lower().encode()) + _field(2, op.encode())
    for name, value in attributes.items():
        node += _field(5, _field(1, name.encode()) + _field(2, _value(value)))
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String(op)
        builder._WriteBlob(node, append_zero=True, type_=flexbuffers.Type.STRING)
    return bytes(builder.Finish())


def _value(value: Any) -> bytes:
    if isinstance(value, list):
        return _field(1, b"".join(_single(item) for item in value))
    return _single(value)


def _single(value: Any) -> bytes:
    if isinstance(value, bool):
        return _number(5, int(value))
    if isinstance(value, TensorType):
        from oplet_flex_ops.attributes import (
            TYPES,  # here, as the operators of text, which have no types, go without that package
        )

        return _number(6, next(number for number, type in TYPES.items() if type is value))
    if isinstance(value, (int, np.integer)):
        return _number(3, int(value))
    if isinstance(value, float):
        return bytes([4 << 3 | 5]) + struct.pack("<f", value)
    if isinstance(value, (str, bytes)):
        return _field(2, value.encode() if isinstance(value, str) else value)
    return _field(7, _shape(value))


def _shape(sizes: Sequence[int] | None) -> bytes:
    return _number(3, 1) if sizes is None else b"".join(_field(2, _number(1, size)) for size in sizes)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value & 0xFFFFFFFFFFFFFFFF)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
