"""HASHTABLE: the handle of a hash table, which is made at first use. See `oplet_builtin_ops.control.resources`.

Tables map INT64 to STRING or STRING to INT64, as in tflite/kernels/hashtable.cc.
"""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import HashtableOptions
from oplet_builtin_ops.control.resources import HashTable, find_or_make


def prepare(context: Context, node: Node) -> None:
    """Check a HASHTABLE node: the key and value types, and the handle's shape, [1]."""
    ensure_operands(node, 0)
    options = node.options(HashtableOptions)
    ensure(
        {options.key_dtype, options.value_dtype} == {TensorType.INT64, TensorType.STRING},
        f"a table maps INT64 to STRING or STRING to INT64, not {options.key_dtype.name} to {options.value_dtype.name}.",
    )
    ensure_type(node.outputs[0], TensorType.RESOURCE)
    context.resize_tensor(node.outputs[0], (1,))


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that writes the hash table's handle, and creates the table if it does not exist."""
    output, options = node.outputs[0].data, node.options(HashtableOptions)

    def run() -> None:
        output[0] = options.table_id
        find_or_make(context, options.table_id, HashTable(options.key_dtype, options.value_dtype))

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind)
