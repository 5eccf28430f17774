"""HASHTABLE_LOOKUP: rows of a value tensor whose keys are looked up by binary search; zeros if a key is missing.

Numerics: tflite/kernels/hashtable_lookup.cc. For keys that are not sorted or not unique the result is that of the C library's
bsearch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array
from oplet.kernels.operands import ensure_operands


def prepare(context: Context, node: Node) -> None:
    """Set the output shapes of HASHTABLE_LOOKUP: a row of values and a hit flag (0 or 1) for each key that is looked up."""
    ensure_operands(node, 3, 2)
    wanted, keys, values = node.inputs
    output, hits = node.outputs
    for tensor in (wanted, keys):
        ensure_type(tensor, TensorType.INT32)
        ensure(tensor.ndim == 1, f"{tensor} has {tensor.ndim} dimensions; keys are a vector.")
    ensure(values.ndim >= 1, f"the values {values} have no rows.")
    ensure(keys.shape[0] == values.shape[0], f"the keys {keys} are not as many as the rows of the values {values}.")
    ensure(values.type is not TensorType.STRING or values.ndim == 1, f"the values {values} are strings and no vector.")
    ensure_type(hits, TensorType.UINT8)
    ensure(output.type is values.type, f"the output {output} and the values {values} differ in type.")
    ensure(keys.size, f"the table is empty: the keys are {keys}.")
    context.resize_tensor(output, wanted.shape + values.shape[1:])
    context.resize_tensor(hits, wanted.shape)


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that looks up all keys of a HASHTABLE_LOOKUP node at once."""
    wanted, keys, values = (tensor.data for tensor in node.inputs)
    output, hits = (tensor.data for tensor in node.outputs)
    missing = b"" if node.inputs[2].type is TensorType.STRING else 0
    find = _search_sorted if node.inputs[1].is_constant and (keys[1:] > keys[:-1]).all() else _search

    def run() -> None:
        rows = find(keys, wanted)
        np.greater_equal(rows, 0, hits, casting="unsafe")
        np.take(values, rows, 0, output, mode="clip")
        output[rows < 0] = missing

    return run


def _search_sorted(keys: Array, wanted: Array) -> Array:
    """Return for each wanted key its position among sorted, unique keys, or -1."""
    rows = keys.searchsorted(wanted)
    rows[keys.take(rows, mode="clip") != wanted] = -1
    return rows


def _search(keys: Array, wanted: Array) -> Array:
    """Return for each wanted key the position that C's bsearch would find, or -1."""
    low, high = np.zeros(wanted.shape, np.intp), np.full(wanted.shape, keys.size)
    found = np.full(wanted.shape, -1)
    while True:
        checkpoint()
        searching = (low < high) & (found < 0)
        if not searching.any():
            return found
        middle = (low + high) // 2
        probe = keys.take(middle, mode="clip")
        found = np.where(searching & (wanted == probe), middle, found)
        high = np.where(searching & (wanted < probe), middle, high)
        low = np.where(searching & (wanted > probe), middle + 1, low)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
