"""Compiled code of accelerators behind a model: LiteRT's ahead-of-time compiler puts it there.

Nodes of the custom op DISPATCH_OP hold its position from the file's start and its size in their options, a FlexBuffers map.
"""

from __future__ import annotations

import struct

from oplet.errors import ModelError
from oplet.schema.flexbuffers import read_flexbuffer

__all__ = ["DISPATCH_OP", "bytecode", "with_bytecode_at"]

DISPATCH_OP = "DISPATCH_OP"

_UINT64 = struct.Struct("<Q")


def bytecode(options: bytes) -> tuple[int, int] | None:
    """Position and size of the code that a node's options refer to; None if they refer to none."""
    try:
        values = read_flexbuffer(options)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    position, size = values.get("bytecode_offset"), values.get("bytecode_size")
    return (position, size) if isinstance(position, int) and isinstance(size, int) and position > 0 and size > 0 else None


def with_bytecode_at(options: bytes, position: int) -> bytes:
    """The options with another position, in the same number of bytes.

    Raises:
        ModelError: the position is not written as the compiler writes it.
    """
    found = bytecode(options)
    if found is not None:
        old = _UINT64.pack(found[0])
        changed = options.replace(old, _UINT64.pack(position))
        if options.count(old) == 1 and bytecode(changed) == (position, found[1]):
            return changed
    raise ModelError(f"A {DISPATCH_OP} node refers to compiled code in a way that oplet cannot write; compile the model again.")
