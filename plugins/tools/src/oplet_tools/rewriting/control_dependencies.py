"""Control dependencies, written: `oplet.toolkit.decode_control_dependencies` reads them, and has the layout in its module."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["encode_control_dependencies"]

_VERSION = 1


def encode_control_dependencies(edges: Sequence[Sequence[tuple[int, int]]]) -> bytes:
    """Encode control edges between nodes as the metadata entry `model_control_dependencies`.

    Args:
        edges: for each subgraph its edges, as pairs (before, after) of node indices.
    """
    out = bytearray()
    _put(out, _VERSION)
    _put(out, len(edges))
    for of_subgraph in edges:
        _put(out, len(of_subgraph))
        for before, after in of_subgraph:
            _put(out, _zigzag(before))
            _put(out, _zigzag(after))
    return bytes(out)


def _put(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _zigzag(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1
