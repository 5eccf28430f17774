"""StringSplit and StringSplitV2: split each string of a vector; the parts are a sparse matrix with one row per string.

StringSplit cuts at every byte that occurs in its delimiter, and between all bytes where the delimiter is empty. StringSplitV2
cuts at a separator, as Python's `str.split` does, and at white space where the separator is empty.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.limits import paced
from oplet.kernels.strings import STRING, StringMeter
from oplet_flex_ops.attributes import Attributes, checked_attributes
from oplet_flex_ops.texts.elementwise import checked, put_strings

_SPACE = b" \t\n\v\f\r"
#: Bytes of scratch for each part, besides itself: its references, and its place in its row; and for each row, its list and its size.
_SCRATCH, _ROW = 48, 112
#: Returns the function that splits a string, for a delimiter or separator, and the one that returns how many parts that may make.
_Splitter = Callable[[bytes], tuple[Callable[[bytes], list[bytes]], Callable[[bytes], int]]]


def _at_bytes(attributes: Attributes) -> _Splitter:
    skip = attributes.flag("skip_empty", default=True)

    def make(delimiter: bytes) -> tuple[Callable[[bytes], list[bytes]], Callable[[bytes], int]]:
        if not delimiter:
            return (lambda string: [string[at : at + 1] for at in paced(range(len(string)), 4096)]), len
        one, same = delimiter[:1], bytes.maketrans(delimiter, delimiter[:1] * len(delimiter))

        def split(string: bytes) -> list[bytes]:
            parts, at = [], 0
            for blurred in string.translate(same).split(one) if string else ():
                parts.append(string[at : at + len(blurred)])
                at += len(blurred) + 1
            return [part for part in parts if part] if skip else parts

        return split, lambda string: string.translate(same).count(one) + 1

    return make


def _at_separator(attributes: Attributes) -> _Splitter:
    most = attributes.integer("maxsplit", default=-1)

    def make(separator: bytes) -> tuple[Callable[[bytes], list[bytes]], Callable[[bytes], int]]:
        if not most:
            return (lambda string: [string]), lambda string: 1
        if separator:
            return (lambda string: string.split(separator, most)), lambda string: string.count(separator) + 1
        if most < 0:
            return bytes.split, lambda string: len(string) // 2 + 1

        def split(string: bytes) -> list[bytes]:
            parts = string.split(None, most)
            if len(parts) <= most and len(parts) == most:
                parts.append(b"")  # what is left after the last part that was asked for, nothing
            return parts

        return split, lambda string: len(string) // 2 + 1

    return make


def _registration(settings: Callable[[Attributes], _Splitter]) -> Registration:
    def prepare(context: Context, node: Node) -> None:
        attributes = checked_attributes(node, 2, 3)
        node.prepared = settings(attributes)
        strings, separator = node.inputs
        for tensor in (strings, separator, node.outputs[1]):
            ensure_type(tensor, TensorType.STRING)
        ensure(strings.ndim == 1, lambda: f"{strings} must be a vector.")
        ensure(separator.size == 1, lambda: f"{separator} must be one string.")
        for tensor in (node.outputs[0], node.outputs[2]):
            ensure_type(tensor, TensorType.INT64)
        for tensor in node.outputs[:2]:
            context.set_dynamic(tensor)
        context.resize_tensor(node.outputs[2], (2,))

    def bind(context: Context, node: Node) -> Thunk:
        strings, separator = (tensor.data for tensor in node.inputs)
        indices, values, shape = node.outputs
        make = node.prepared

        def run() -> None:
            (split, most), items = make(separator.item()), strings.tolist()
            rows: list[list[bytes]] = []
            meter, held = StringMeter(), 0
            for item in checked(items):
                parts = most(item)
                meter.add(len(item), parts)
                held += parts
                meter.hold(_SCRATCH * held + _ROW * len(rows))
                rows.append(split(item))
                meter.settle(STRING * (parts - len(rows[-1])), 0)
                held += len(rows[-1]) - parts
            sizes = [len(row) for row in rows]
            count = sum(sizes)
            context.resize_tensor(indices, (count, 2))
            context.resize_tensor(values, (count,))
            indices.data[:, 0] = np.repeat(np.arange(len(rows)), sizes)
            indices.data[:, 1] = np.arange(count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            put_strings(values.data, [part for row in rows for part in row])
            shape.data[:] = len(rows), max(sizes, default=0)

        return run

    return Registration(prepare=prepare, bind=bind)


STRINGSPLIT = _registration(_at_bytes)
STRINGSPLITV2 = _registration(_at_separator)
