"""RegexSplitWithOffsets: split strings at matches of a regular expression.

Inputs are strings (of any shape, n in all), a pattern whose first group is the delimiter, and a pattern of the delimiters that
are kept as parts of their own; if it is empty, none is. Outputs are the parts as strings, their first bytes and the bytes behind
their last in the string, and the row splits [n + 1], all int64 but for the strings. A string ends at its first NUL, as in
TensorFlow Text.

Numerics: core/kernels/regex_split.cc of tensorflow/text, with RE2.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.strings import StringMeter, compile_pattern, foresee_match
from oplet_text_ops.nodes import give_all, makes

#: A compiled pattern of google-re2, whose module has no types.
Pattern = Any
#: What looks at the text before a place: the text is cut there, as RE2's FindAndConsume does.
_LOOKS_BACK = re.compile(rb"\\[AbB]|(?<!\[)\^")
#: A mask of the matches between two checkpoints.
_OFTEN = 0xFF
#: Bytes of where a part begins and ends.
_PLACE = 160


def split(text: bytes, delimiter: Pattern, kept: Pattern | None, meter: StringMeter) -> list[tuple[int, int]]:
    """Split a text at delimiters; return the start and end of each part. Delimiters that `kept` matches entirely are parts, too.

    The delimiter is the first group of each match; the rest of a match is dropped, as in TensorFlow Text.

    Raises:
        EnsureError: a match is empty, after which TensorFlow Text would never end, or has no first group.
    """
    found: list[tuple[int, int]] = []
    looks_back = bool(_LOOKS_BACK.search(delimiter.pattern))
    at = count = 0
    while True:
        foresee_match(delimiter, len(text) - at)  # each search may read all that is left
        match = delimiter.search(text[at:]) if looks_back else delimiter.search(text, at)
        if match is None:
            break
        shift = at if looks_back else 0
        start, end = match.span(1)
        ensure(start >= 0, lambda: f"the first group of {delimiter.pattern!r:.80} has no part in a match.")
        start, end, last = start + shift, end + shift, match.end() + shift
        ensure(last > at, lambda: f"{delimiter.pattern!r:.80} matches an empty text, and splitting by it would not end.")
        if start > at:
            found.append((at, start))
        if kept is not None:
            foresee_match(kept, end - start)
            if kept.fullmatch(text[start:end]):
                found.append((start, end))
        at = last
        count += 1
        if not count & _OFTEN:
            checkpoint()
            meter.hold(_PLACE * len(found))
    if at < len(text):
        found.append((at, len(text)))
    return found


#: Bytes of where a part is, as a tuple and in arrays.
_PART = 160


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3, 4)
    for tensor in node.inputs:
        ensure_type(tensor, TensorType.STRING)
    for tensor in node.inputs[1:]:
        ensure(tensor.size == 1, lambda tensor=tensor: f"{tensor} must hold one pattern.")  # type: ignore[misc] # bound in the loop
    makes(context, node, TensorType.STRING, TensorType.INT64)


def bind(context: Context, node: Node) -> Thunk:
    source, delimiters, keep = node.inputs

    def run() -> None:
        delimiter = compile_pattern(delimiters.data.ravel()[0])
        kept = compile_pattern(keep.data.ravel()[0]) if keep.data.ravel()[0] else None
        ensure(delimiter.groups >= 1, lambda: f"{delimiter.pattern!r:.80} has no group around the delimiter.")
        parts: list[bytes] = []
        places: list[tuple[int, int]] = []
        splits, meter = [0], StringMeter()
        for text in source.data.ravel().tolist():
            text = text.partition(b"\0")[0]
            meter.read(len(text))
            found = split(text, delimiter, kept, meter)
            meter.hold(_PART * (len(places) + 2 * len(found)))
            meter.add(sum(end - start for start, end in found), len(found))
            places += found
            parts += [text[start:end] for start, end in found]
            splits.append(len(places))
        columns = np.array(places, np.int64).reshape(len(places), 2)
        give_all(context, node, parts, columns[:, 0], columns[:, 1], splits)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
