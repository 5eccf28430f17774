"""UnicodeScriptTokenizeWithOffsets and WhitespaceTokenizeWithOffsets: words in rows of code points, with offsets.

Inputs are code points (int32) and the splits of their rows; outputs the code points of all words, where each word begins among them (and
their number), each word's first place and the one behind its last in its row (int64), and where each row's words begin among the words.
The former parts where the script changes, and leaves out white space unless the option `keep_whitespace` is set, which parts at it too;
the latter parts at white space.

Numerics: core/kernels/{unicode_script_tokenize,whitespace_tokenize}_kernel.cc of tensorflow/text
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import flag
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import ensure_row_splits, give_all
from oplet_text_ops.texts.code_points import WHITE_SPACES, word_scripts_of

_SPACES = np.array([ord(space.decode()) for space in WHITE_SPACES])
#: Bytes of scratch per code point.
_SCRATCH = 96


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 5)
    points, splits = node.inputs
    ensure_vector(points, TensorType.INT32)
    ensure_type(splits, TensorType.INT32, TensorType.INT64)
    ensure_type(node.outputs[0], TensorType.INT32)
    for output in node.outputs[2:4]:
        ensure_type(output, TensorType.INT64)
    for output in (node.outputs[1], node.outputs[4]):
        ensure_type(output, splits.type)
    for output in node.outputs:
        context.set_dynamic(output)
    options = options_of(node)
    by_script = node.op_name.endswith("UnicodeScriptTokenizeWithOffsets")
    node.prepared = by_script, by_script and "keep_whitespace" in options and flag(options, "keep_whitespace")


def bind(context: Context, node: Node) -> Thunk:
    points, splits = node.inputs
    by_script, keep = node.prepared

    def run() -> None:
        values = points.data
        charge(_SCRATCH * values.size)
        rows = ensure_row_splits(splits, values.size)
        spaces = np.isin(values, _SPACES)
        kind = word_scripts_of(values) if by_script else spaces
        parted = kind[1:] != kind[:-1]
        if keep:
            parted |= spaces[1:] != spaces[:-1]
        give_all(context, node, *_words(values, rows, parted, None if keep else ~spaces))

    return run


def _words(values: Array, rows: Array, parted: Array, kept: Array | None) -> tuple[Array, ...]:
    """Return the outputs.

    Args:
        rows: row splits.
        parted: for each value but the first, whether another word may begin there.
        kept: which values belong to words; None for all.
    """
    begins = np.concatenate((np.ones(min(1, len(values)), bool), parted))
    begins[rows[rows < len(values)]] = True
    groups = np.cumsum(begins)
    places = np.arange(len(values)) if kept is None else np.flatnonzero(kept)
    group = groups[places]
    first = np.flatnonzero(np.diff(group, prepend=0))
    last = np.concatenate((first[1:] - 1, np.full(min(1, len(places)), len(places) - 1, np.int64)))
    row = np.searchsorted(rows, places[first], side="right") - 1
    counts = np.bincount(row, minlength=len(rows) - 1)
    return (
        values[places],
        np.concatenate((first, [len(places)])),
        places[first] - rows[row],
        places[last] + 1 - rows[row],
        np.concatenate(([0], np.cumsum(counts))),
    )


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.INT32,),
    differences="Row splits that do not end with the number of code points are refused.",
)
