"""Control dependencies: edges between nodes besides those of tensors, in the metadata entry `model_control_dependencies`.

Layout: tflite/converter/experimental/remat/metadata_util.cc of google-ai-edge/LiteRT. Numbers are varints of seven bits a
byte, low bits first; a version, then the number of subgraphs, then for each subgraph the number of its edges and the edges
(the node that runs first, the one that runs later) as zigzag-coded node indices.
"""

from __future__ import annotations

from collections.abc import Iterator

from oplet.schema.protobuf import varints

__all__ = ["CONTROL_DEPENDENCIES", "decode_control_dependencies"]

#: Name of the metadata entry.
CONTROL_DEPENDENCIES = "model_control_dependencies"
_VERSION = 1

Edges = list[tuple[int, int]]


def decode_control_dependencies(data: bytes) -> list[Edges] | None:
    """Decode the entry `model_control_dependencies`: for each subgraph its edges, as pairs (before, after) of node indices.

    Returns:
        The edges; None if the entry is damaged or of another version. LiteRT ignores such an entry, and so do the callers here.
    """
    numbers = _numbers(data)
    try:
        if next(numbers) != _VERSION:
            return None
        found = [[(_signed(next(numbers)), _signed(next(numbers))) for _ in range(next(numbers))] for _ in range(next(numbers))]
        return found if next(numbers, None) is None else None
    except (StopIteration, ValueError):
        return None


def _numbers(data: bytes) -> Iterator[int]:
    for value in varints(data):
        if value >> 35:
            raise ValueError("a number of more than 32 bits")
        yield value


def _signed(value: int) -> int:
    return -(value + 1) // 2 if value & 1 else value // 2
