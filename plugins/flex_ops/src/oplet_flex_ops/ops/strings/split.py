"""StringSplit and StringSplitV2: split each string of a vector; the parts are a sparse matrix with one row per string.

StringSplit cuts at every byte that occurs in its delimiter, and between all bytes where the delimiter is empty. StringSplitV2
cuts at a separator, as Python's `str.split` does, and at white space where the separator is empty.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet_flex_ops.attributes import Attributes, checked_attributes
from oplet_flex_ops.texts.elementwise import charge_strings, checked, put_strings

_SPACE = b" \t\n\v\f\r"
#: Returns the function that splits a string, for a delimiter or separator.
_Splitter = Callable[[bytes], Callable[[bytes], list[bytes]]]


def _at_bytes(attributes: Attributes) -> _Splitter:
    skip = attributes.flag("skip_empty", default=True)

    def make(delimiter: bytes) -> Callable[[bytes], list[bytes]]:
        if not delimiter:
            return lambda string: [string[at : at + 1] for at in range(len(string))]
        one, same = delimiter[:1], bytes.maketrans(delimiter, delimiter[:1] * len(delimiter))

        def split(string: bytes) -> list[bytes]:
            parts, at = [], 0
            for blurred in string.translate(same).split(one) if string else ():
                parts.append(string[at : at + len(blurred)])
                at += len(blurred) + 1
            return [part for part in parts if part] if skip else parts

        return split

    return make


def _at_separator(attributes: Attributes) -> _Splitter:
    most = attributes.integer("maxsplit", default=-1)

    def make(separator: bytes) -> Callable[[bytes], list[bytes]]:
        if not most:
            return lambda string: [string]
        if separator:
            return lambda string: string.split(separator, most)
        if most < 0:
            return bytes.split

        def split(string: bytes) -> list[bytes]:
            parts = string.split(None, most)
            if len(parts) <= most and len(parts) == most:
                parts.append(b"")  # what is left after the last part that was asked for, nothing
            return parts

        return split

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
            split, items = make(separator.item()), strings.tolist()
            charge_strings(sum(map(len, items)) + len(items), 0)  # at most a part for each byte
            rows = [split(item) for item in checked(items)]
            sizes = [len(row) for row in rows]
            count = sum(sizes)
            context.resize_tensor(indices, (count, 2))
            context.resize_tensor(values, (count,))
            indices.data[:, 0] = np.repeat(np.arange(len(rows)), sizes)
            indices.data[:, 1] = [at for size in sizes for at in range(size)]
            put_strings(values.data, [part for row in rows for part in row])
            shape.data[:] = len(rows), max(sizes, default=0)

        return run

    return Registration(prepare=prepare, bind=bind)


SPLIT = _registration(_at_bytes)
SPLIT_V2 = _registration(_at_separator)
