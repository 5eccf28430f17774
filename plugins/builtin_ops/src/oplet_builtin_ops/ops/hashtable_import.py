"""HASHTABLE_IMPORT: fill a hash table, once; later imports have no effect. Behaviour: tflite/kernels/hashtable_import.cc."""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, charge, ensure
from oplet.kernels.limits import held_nbytes
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.control.resources import MAPPINGS, HashTable, find, table_handle

#: Bytes of an entry, and of the Python objects that it is made from.
_ENTRY = 160


def prepare(context: Context, node: Node) -> None:
    """Check a HASHTABLE_IMPORT node: the handle, and equal numbers of keys and values."""
    ensure_operands(node, 3, 0)
    handle, keys, values = node.inputs
    table_handle(handle)
    ensure(
        (keys.type, values.type) in MAPPINGS.items(),
        f"a table maps INT64 to STRING or STRING to INT64, not {keys} to {values}.",
    )
    ensure(keys.shape == values.shape, f"the keys {keys} and the values {values} differ in shape.")


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that fills the hash table once; of equal keys the first wins."""
    handle, keys, values = (tensor.data for tensor in node.inputs)

    def run() -> None:
        table = find(context, handle, HashTable)
        table.check(node.inputs[1], node.inputs[2])
        if table.entries is None:
            charge(2 * _ENTRY * keys.size)
            strings = keys if keys.dtype.hasobject else values
            table.kept.add(_ENTRY * keys.size + held_nbytes(strings))
            table.entries = dict(zip(reversed(keys.ravel().tolist()), reversed(values.ravel().tolist())))

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, types=tuple(MAPPINGS))
