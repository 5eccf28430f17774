"""LookupTableFindV2, LookupTableInsertV2, LookupTableImportV2, LookupTableRemoveV2, LookupTableSizeV2 and LookupTableExportV2.

Keys may have any shape; values have that shape and the one of the table's values. Tables are exported in the order in which their keys
came; TensorFlow's order is not defined.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet_flex_ops.attributes import Attributes, checked_attributes
from oplet_flex_ops.tables import Table, read_table

#: Bytes of scratch for a key and its value.
_ENTRY = 48


def _check_handle(node: Node) -> None:
    ensure_type(node.inputs[0], TensorType.RESOURCE)
    ensure(node.inputs[0].size == 1, lambda: f"{node.inputs[0]} must hold one table.")


def prepare_find(context: Context, node: Node) -> None:
    """Check the inputs of a node that looks up keys: a table, keys, default value(s)."""
    attributes = checked_attributes(node, 3)
    _check_handle(node)
    attributes.ensure_type("Tin", node.inputs[1])
    for tensor in (node.inputs[2], node.outputs[0]):
        attributes.ensure_type("Tout", tensor)
    context.set_dynamic(node.outputs[0])


def bind_find(context: Context, node: Node) -> Thunk:
    _, keys, default = node.inputs
    output = node.outputs[0]

    def run() -> None:
        table = read_table(node, keys.type, output.type)
        shape = (*keys.shape, *table.value_shape)
        ensure(
            default.shape in (table.value_shape, shape) or (not table.value_shape and default.size == 1),
            lambda: f"the default {default} must have the shape of a value, {list(table.value_shape)}, or of all, {list(shape)}.",
        )
        charge(_ENTRY * keys.size)
        context.resize_tensor(output, shape)
        table.find(keys.data, default.data, output.data)

    return run


def _writing(write: Callable[[Table, Array, Array], None]) -> Registration:
    def prepare(context: Context, node: Node) -> None:
        attributes = checked_attributes(node, 3, 0)
        _check_handle(node)
        first, second = _key_and_value(attributes)
        attributes.ensure_type(first, node.inputs[1])
        attributes.ensure_type(second, node.inputs[2])

    def bind(context: Context, node: Node) -> Thunk:
        _, keys, values = node.inputs

        def run() -> None:
            table = read_table(node, keys.type, values.type)
            ensure(
                values.shape == (*keys.shape, *table.value_shape),
                lambda: f"the values {values} must be as many as the keys {keys}, each of shape {list(table.value_shape)}.",
            )
            charge(4 * _ENTRY * keys.size)
            write(table, keys.data, values.data)

        return run

    return Registration(prepare=prepare, bind=bind)


def _key_and_value(attributes: Attributes) -> tuple[str, str]:
    """Return the names of the key and value type attributes, which differ for InitializeTableV2."""
    return ("Tkey", "Tval") if "Tkey" in attributes.node_def.attributes else ("Tin", "Tout")


def prepare_remove(context: Context, node: Node) -> None:
    """Check the inputs of a node that removes keys: a table and keys."""
    attributes = checked_attributes(node, 2, 0)
    _check_handle(node)
    attributes.ensure_type("Tin", node.inputs[1])


def bind_remove(context: Context, node: Node) -> Thunk:
    return lambda: read_table(node, node.inputs[1].type).remove(node.inputs[1].data)


def prepare_size(context: Context, node: Node) -> None:
    """Check the input of a node that returns a table's size."""
    checked_attributes(node, 1)
    _check_handle(node)
    ensure_type(node.outputs[0], TensorType.INT64)
    context.resize_tensor(node.outputs[0], ())


def bind_size(context: Context, node: Node) -> Thunk:
    output = node.outputs[0].data

    def run() -> None:
        output[()] = read_table(node).size

    return run


def prepare_export(context: Context, node: Node) -> None:
    """Check the input of a node that exports a table's entries."""
    attributes = checked_attributes(node, 1, 2)
    _check_handle(node)
    for name, output in zip(("Tkeys", "Tvalues"), node.outputs):
        attributes.ensure_type(name, output)
        context.set_dynamic(output)


def bind_export(context: Context, node: Node) -> Thunk:
    keys, values = node.outputs

    def run() -> None:
        table = read_table(node, keys.type, values.type)
        entries = table.entries or {}
        context.resize_tensor(keys, (len(entries),))
        context.resize_tensor(values, (len(entries), *table.value_shape))
        keys.data[:] = list(entries)
        if table.value_shape and entries:
            np.stack(list(entries.values()), out=values.data)
        elif entries:
            values.data[:] = list(entries.values())

    return run


LOOKUPTABLEFINDV2 = Registration(prepare=prepare_find, bind=bind_find)
LOOKUPTABLEINSERTV2 = _writing(Table.insert)
INITIALIZETABLEV2 = LOOKUPTABLEIMPORTV2 = _writing(Table.replace)
LOOKUPTABLEREMOVEV2 = Registration(prepare=prepare_remove, bind=bind_remove)
LOOKUPTABLESIZEV2 = Registration(prepare=prepare_size, bind=bind_size)
LOOKUPTABLEEXPORTV2 = Registration(prepare=prepare_export, bind=bind_export)
