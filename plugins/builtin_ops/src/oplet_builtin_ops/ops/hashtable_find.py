"""HASHTABLE_FIND: the values of keys, or a default value. Behaviour: tflite/kernels/hashtable_find.cc."""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, charge, ensure
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.control.resources import MAPPINGS, HashTable, find, table_handle

#: Bytes of scratch for a key and its value.
_ENTRY = 48


def prepare(context: Context, node: Node) -> None:
    """Check a HASHTABLE_FIND node and give the output the keys' shape."""
    ensure_operands(node, 3)
    handle, keys, default = node.inputs
    output = node.outputs[0]
    table_handle(handle)
    ensure(default.type is output.type, f"the default value {default} and the output {output} differ in type.")
    ensure(default.size >= 1, f"the default value {default} is empty.")
    ensure(
        (keys.type, output.type) in MAPPINGS.items(),
        f"a table maps INT64 to STRING or STRING to INT64, not {keys} to {output}.",
    )
    context.resize_tensor(output, keys.shape)


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that looks up each key in the hash table; missing keys get the default value."""
    handle, keys, default = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data.reshape(-1)

    def run() -> None:
        table = find(context, handle, HashTable)
        table.check(node.inputs[1], node.outputs[0])
        ensure(table.entries is not None, "hashtable need to be initialized before using: nothing was imported into it.")
        entries, missing = {} if table.entries is None else table.entries, default.reshape(-1)[0]
        charge(_ENTRY * keys.size)
        output[:] = [entries.get(key, missing) for key in keys.ravel().tolist()]

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, types=tuple(MAPPINGS))
