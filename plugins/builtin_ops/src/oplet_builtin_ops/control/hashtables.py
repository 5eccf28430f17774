"""Hash tables from INT64 to STRING or STRING to INT64: their handles (HASHTABLE), which are made at first use, how they are filled, once
(_IMPORT), looked up (_FIND) and counted (_SIZE). See `oplet_builtin_ops.control.resources`.

Behaviour: tflite/kernels/hashtable.cc, hashtable_import.cc, hashtable_find.cc, hashtable_size.cc
"""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.limits import held_nbytes
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import HashtableOptions
from oplet_builtin_ops.control.resources import MAPPINGS, TABLES, HashTable, find, find_or_make, table_handle


def _prepare_hashtable(context: Context, node: Node) -> None:
    """Check a HASHTABLE node: the key and value types, and the handle's shape, [1]."""
    ensure_operands(node, 0)
    options = node.options(HashtableOptions)
    ensure(
        {options.key_dtype, options.value_dtype} == {TensorType.INT64, TensorType.STRING},
        f"a table maps INT64 to STRING or STRING to INT64, not {options.key_dtype.name} to {options.value_dtype.name}.",
    )
    ensure_type(node.outputs[0], TensorType.RESOURCE)
    context.resize_tensor(node.outputs[0], (1,))


def _bind_hashtable(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that writes the hash table's handle, and creates the table if it does not exist."""
    output, options = node.outputs[0].data, node.options(HashtableOptions)

    def run() -> None:
        output[0] = options.table_id
        find_or_make(context, options.table_id, HashTable(options.key_dtype, options.value_dtype))

    return run


#: Bytes of an entry, and of the Python objects that it is made from.
_ENTRY = 160


def _prepare_hashtable_import(context: Context, node: Node) -> None:
    """Check a HASHTABLE_IMPORT node: the handle, and equal numbers of keys and values."""
    ensure_operands(node, 3, 0)
    handle, keys, values = node.inputs
    table_handle(handle)
    ensure(
        (keys.type, values.type) in MAPPINGS.items(),
        f"a table maps INT64 to STRING or STRING to INT64, not {keys} to {values}.",
    )
    ensure(keys.shape == values.shape, f"the keys {keys} and the values {values} differ in shape.")


def _bind_hashtable_import(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that fills the hash table once; of equal keys the first wins."""
    handle, keys, values = (tensor.data for tensor in node.inputs)

    def run() -> None:
        table = find(context, handle, HashTable)
        table.check(node.inputs[1], node.inputs[2])
        if table.entries is None:
            charge(2 * _ENTRY * keys.size)
            entries = dict(zip(reversed(keys.ravel().tolist()), reversed(values.ravel().tolist())))
            table.kept.add(_ENTRY * keys.size + held_nbytes(keys if keys.dtype.hasobject else values))
            table.entries = entries

    return run


#: Bytes of scratch for a key and its value.
_FOUND = 48


def _prepare_hashtable_find(context: Context, node: Node) -> None:
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


def _bind_hashtable_find(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that looks up each key in the hash table; missing keys get the default value."""
    handle, keys, default = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data.reshape(-1)

    def run() -> None:
        table = find(context, handle, HashTable)
        table.check(node.inputs[1], node.outputs[0])
        ensure(table.entries is not None, "hashtable need to be initialized before using: nothing was imported into it.")
        entries, missing = {} if table.entries is None else table.entries, default.reshape(-1)[0]
        charge(_FOUND * keys.size)
        output[:] = [entries.get(key, missing) for key in keys.ravel().tolist()]

    return run


def _prepare_hashtable_size(context: Context, node: Node) -> None:
    """Check the handle of a HASHTABLE_SIZE node and give the output the shape [1]."""
    ensure_operands(node, 1)
    table_handle(node.inputs[0])
    ensure_type(node.outputs[0], TensorType.INT64)
    context.resize_tensor(node.outputs[0], (1,))


def _bind_hashtable_size(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that writes the number of the hash table's keys; 0 if the table is not filled yet."""
    handle, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        output[0] = len(find(context, handle, HashTable).entries or ())

    return run


HASHTABLE = Registration(prepare=_prepare_hashtable, bind=_bind_hashtable)
HASHTABLE_IMPORT = Registration(prepare=_prepare_hashtable_import, bind=_bind_hashtable_import, types=tuple(MAPPINGS))
HASHTABLE_FIND = Registration(prepare=_prepare_hashtable_find, bind=_bind_hashtable_find, types=tuple(MAPPINGS))
HASHTABLE_SIZE = Registration(prepare=_prepare_hashtable_size, bind=_bind_hashtable_size, types=TABLES)
