"""Compiled accelerator code that LiteRT's ahead-of-time compiler appends to a model.

The custom options of DISPATCH_OP nodes, a FlexBuffers map, have its position from the start of the file and its size.
"""

from __future__ import annotations

import struct

from oplet.errors import ModelError
from oplet.schema.flexbuffers import read_flexbuffer

__all__ = ["DISPATCH_OP", "bytecode", "with_bytecode_at"]

DISPATCH_OP = "DISPATCH_OP"

_UINT64 = struct.Struct("<Q")


def bytecode(options: bytes) -> tuple[int, int] | None:
    """Return the position and size in bytes of the compiled code that a node's options refer to; None if there is none."""
    try:
        values = read_flexbuffer(options)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    position, size = values.get("bytecode_offset"), values.get("bytecode_size")
    return (position, size) if isinstance(position, int) and isinstance(size, int) and position > 0 and size > 0 else None


def with_bytecode_at(options: bytes, position: int) -> bytes:
    """Return the options with another position of the compiled code, in the same number of bytes.

    Raises:
        ModelError: the position is not encoded as the compiler encodes it.
    """
    found = bytecode(options)
    if found is not None:
        old = _UINT64.pack(found[0])
        changed = options.replace(old, _UINT64.pack(position))
        if options.count(old) == 1 and bytecode(changed) == (position, found[1]):
            return changed
    raise ModelError(f"A {DISPATCH_OP} node refers to compiled code in a way that oplet cannot write; compile the model again.")
