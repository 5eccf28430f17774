"""Substr: a part of each string, from a position on, counted in bytes or in UTF-8 characters; a negative position counts from the end.

A string without that position is refused. A length beyond the end takes all that is left; so does a negative one in bytes, while in
characters it takes nothing, and is refused with a negative position.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.broadcasting import broadcast_shape
from oplet.kernels.operands import ensure_same_shape
from oplet.kernels.strings import StringMeter
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.texts.elementwise import put_strings

#: Bytes of scratch for each byte of a string whose characters are counted, bytes or items that are looked at at once, and how slow the former is.
_SCRATCH, _PIECE, _SLOW = 8, 1 << 14, 16


def prepare(context: Context, node: Node) -> None:
    """Check the inputs of a Substr node: strings, positions and lengths, which broadcast."""
    attributes = checked_attributes(node, 3)
    strings, positions, lengths = node.inputs
    ensure_type(strings, TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.STRING)
    attributes.type("T", TensorType.INT32, TensorType.INT64)
    for tensor in (positions, lengths):
        attributes.ensure_type("T", tensor)
    ensure_same_shape(positions, lengths)
    unit = attributes.text("unit", "BYTE", "UTF8_CHAR", default="BYTE")
    node.prepared = _Bytes if unit == "BYTE" else _Characters
    context.resize_tensor(node.outputs[0], broadcast_shape(strings, positions))


def bind(context: Context, node: Node) -> Thunk:
    span: Callable[[bytes, int, int], tuple[int, int]] = node.prepared()
    target = node.outputs[0].data
    sources: list[Any] = [np.broadcast_to(tensor.data, target.shape) for tensor in node.inputs]

    def run() -> None:
        meter, made = StringMeter(), []
        for first in range(0, target.size, _PIECE):
            columns = (source.flat[first : first + _PIECE].tolist() for source in sources)
            for string, position, length in zip(*columns):
                start, stop = span(string, position, length)
                meter.add(stop - start)
                made.append(string[start:stop])
        put_strings(target, made)

    return run


class _Bytes:
    """The part of a string, counted in bytes."""

    def __call__(self, string: bytes, position: int, length: int) -> tuple[int, int]:
        """Return where the part begins and ends in the string."""
        start = _start(string, position, len(string))
        return start, len(string) if length < 0 else max(start, min(start + length, len(string)))


class _Characters:
    """The part of a string, counted in characters of UTF-8; where those of the last string begin is kept, as the next may be the same."""

    def __init__(self) -> None:
        self._string, self._starts = b"", array("q")

    def __call__(self, string: bytes, position: int, length: int) -> tuple[int, int]:
        """Return where the part begins and ends in the string."""
        if string is not self._string:
            self._string, self._starts = string, _starts(string)
        starts = self._starts
        start = _start(string, position, len(starts))
        ensure(length >= 0 or position >= 0, lambda: f"{length} characters from position {position} on are asked for.")
        stop = start + max(length, 0)
        first, last = (starts[at] if at < len(starts) else len(string) for at in (start, stop))
        return first, last


def _starts(string: bytes) -> array[int]:
    """Return where the characters of a string begin; it is looked at in pieces, so that the run can be stopped."""
    starts, meter = array("q"), StringMeter()
    meter.hold(_SCRATCH * len(string))
    for first in range(0, len(string), _PIECE):
        piece = string[first : first + _PIECE]
        meter.read(_SLOW * len(piece))
        starts.extend([at for at, byte in enumerate(piece, first) if byte & 0xC0 != 0x80 or not at])
    return starts


def _start(string: bytes, position: int, size: int) -> int:
    if not -size <= position <= size:
        ensure(False, f"the position {position} lies outside of the string {string!r:.80}, which has {size}.")
    return position + size if position < 0 else position


SUBSTR = Registration(prepare=prepare, bind=bind, pure=True)
