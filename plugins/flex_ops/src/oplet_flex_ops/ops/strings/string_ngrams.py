"""StringNGrams: joined n-grams of each row of a ragged tensor of strings, as a ragged tensor."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_vector
from oplet.kernels.strings import StringMeter
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.texts.elementwise import checked, put_strings

#: Bytes of a reference.
_REFERENCE = 8


class _Settings(NamedTuple):
    separator: bytes
    widths: list[int]
    left: bytes
    right: bytes
    padding: int
    whole_short: bool

    def padding_of(self, width: int) -> int:
        """Return how many padding strings go before and after a row for n-grams of that width."""
        return width - 1 if self.padding < 0 else min(self.padding, width - 1)


def prepare(context: Context, node: Node) -> None:
    """Check the inputs of a StringNGrams node: strings and row splits."""
    attributes = checked_attributes(node, 2, 2)
    ensure_vector(node.inputs[0], TensorType.STRING)
    ensure_vector(node.inputs[1], attributes.type("Tsplits", TensorType.INT32, TensorType.INT64, default=TensorType.INT64))
    ensure_type(node.outputs[0], TensorType.STRING)
    ensure_type(node.outputs[1], node.inputs[1].type)
    settings = node.prepared = _Settings(
        attributes.raw("separator"),
        attributes.integers("ngram_widths"),
        attributes.raw("left_pad"),
        attributes.raw("right_pad"),
        attributes.integer("pad_width"),
        attributes.flag("preserve_short_sequences"),
    )
    ensure(all(width > 0 for width in settings.widths), lambda: f"the ngram_widths {settings.widths} must be above 0.")
    context.set_dynamic(node.outputs[0])
    context.set_dynamic(node.outputs[1])


def bind(context: Context, node: Node) -> Thunk:
    strings, splits = (tensor.data for tensor in node.inputs)
    settings: _Settings = node.prepared

    def run() -> None:
        items, ends = strings.tolist(), array("q", splits.astype(np.int64).tobytes())
        _check_splits(ends, len(items))
        meter, found, totals = StringMeter(), [], array("q", [0])
        for start, end in checked(pairwise(ends)):
            found += _runs(settings, items[start:end], meter)
            totals.append(len(found))
        context.resize_tensor(node.outputs[0], (len(found),))
        put_strings(node.outputs[0].data, found)
        context.resize_tensor(node.outputs[1], (len(totals) if ends else 0,))
        node.outputs[1].data[...] = totals if ends else []

    return run


def _check_splits(ends: array[int], count: int) -> None:
    if not ends:
        ensure(not count, lambda: f"there are no rows for {count} strings: data_splits is empty.")
        return
    rising = all(start <= end for start, end in pairwise(ends))
    ensure(
        ends[0] == 0 and ends[-1] == count and rising,
        lambda: f"data_splits begins with {ends[0]} and ends with {ends[-1]}; it must rise from 0 to {count}.",
    )


def _runs(settings: _Settings, row: list[bytes], meter: StringMeter) -> list[bytes]:
    found = [run for width in settings.widths for run in _of_width(settings, row, width, settings.padding_of(width), meter)]
    if not found and row and settings.whole_short:
        ensure(settings.padding >= 0, "short rows are kept (preserve_short_sequences) with a pad_width below 0.")
        found = [*_of_width(settings, row, len(row) + 2 * settings.padding, settings.padding, meter)]
    return found


def _of_width(settings: _Settings, row: list[bytes], width: int, padding: int, meter: StringMeter) -> Iterator[bytes]:
    """Yield the n-grams of a row of one width."""
    count = len(row) + 2 * padding - width + 1
    if count <= 0:
        return
    meter.hold(_REFERENCE * (len(row) + 2 * padding + width))
    padded = [settings.left] * padding + row + [settings.right] * padding
    yield from meter.join_windows(settings.separator, padded, width)


STRINGNGRAMS = Registration(prepare=prepare, bind=bind)
