"""HASHTABLE_SIZE: the number of keys in a hash table. Behaviour: tflite/kernels/hashtable_size.cc."""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.control.resources import TABLES, HashTable, find, table_handle


def prepare(context: Context, node: Node) -> None:
    """Check the handle of a HASHTABLE_SIZE node and give the output the shape [1]."""
    ensure_operands(node, 1)
    table_handle(node.inputs[0])
    ensure_type(node.outputs[0], TensorType.INT64)
    context.resize_tensor(node.outputs[0], (1,))


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that writes the number of the hash table's keys; 0 if the table is not filled yet."""
    handle, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        output[0] = len(find(context, handle, HashTable).entries or ())

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, types=TABLES)
