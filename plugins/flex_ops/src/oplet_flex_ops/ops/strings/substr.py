"""Substr: a part of each string, from a position on, counted in bytes or in UTF-8 characters; a negative position counts from the end.

A string without that position is refused. A length beyond the end takes all that is left; so does a negative one in bytes, while in
characters it takes nothing, and is refused with a negative position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.broadcasting import broadcast_shape
from oplet.kernels.operands import ensure_same_shape
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.texts.elementwise import checked, put_strings


def prepare(context: Context, node: Node) -> None:
    """Check the node's inputs: strings, positions and lengths, which broadcast."""
    attributes = checked_attributes(node, 3)
    strings, positions, lengths = node.inputs
    ensure_type(strings, TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.STRING)
    attributes.type("T", TensorType.INT32, TensorType.INT64)
    for tensor in (positions, lengths):
        attributes.ensure_type("T", tensor)
    ensure_same_shape(positions, lengths)
    unit = attributes.text("unit", "BYTE", "UTF8_CHAR", default="BYTE")
    node.prepared = _bytes if unit == "BYTE" else _characters
    context.resize_tensor(node.outputs[0], broadcast_shape(strings, positions))


def bind(context: Context, node: Node) -> Thunk:
    part: Callable[[bytes, int, int], bytes] = node.prepared
    target = node.outputs[0].data
    sources: list[Any] = [np.broadcast_to(tensor.data, target.shape) for tensor in node.inputs]

    def run() -> None:
        strings, positions, lengths = (source.ravel().tolist() for source in sources)
        put_strings(target, [part(*each) for each in checked(zip(strings, positions, lengths))])

    return run


def _bytes(string: bytes, position: int, length: int) -> bytes:
    start = _start(string, position, len(string))
    return string[start:] if length < 0 else string[start : start + length]


def _characters(string: bytes, position: int, length: int) -> bytes:
    starts = [at for at, byte in enumerate(string) if byte & 0xC0 != 0x80 or not at]
    start = _start(string, position, len(starts))
    ensure(length >= 0 or position >= 0, lambda: f"{length} characters from position {position} on are asked for.")
    starts.append(len(string))
    return string[starts[start] : starts[min(start + max(length, 0), len(starts) - 1)]]


def _start(string: bytes, position: int, size: int) -> int:
    if not -size <= position <= size:
        ensure(False, f"the position {position} lies outside of the string {string!r:.80}, which has {size}.")
    return position + size if position < 0 else position


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
