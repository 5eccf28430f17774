"""LookupTableFindV2, LookupTableInsertV2, LookupTableImportV2, LookupTableRemoveV2, LookupTableSizeV2 and LookupTableExportV2.

Keys may have any shape; values have that shape and the one of the table's values. Tables are exported in the order in which their keys
came; TensorFlow's order is not defined.

Ops that create tables: HashTableV2, MutableHashTableV2, MutableHashTableOfTensorsV2, MutableDenseHashTableV2, anonymous ones.

A HashTable is filled once. The anonymous operators give a new table whenever they run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet_flex_ops.attributes import Attributes, checked_attributes
from oplet_flex_ops.tables import Table, find_or_make, gives_handle, read_table, table_types

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


def _value_shape(attributes: Attributes) -> Shape:
    if "value_shape" not in attributes.node_def.attributes:
        return ()
    shape = attributes.shape("value_shape")
    if shape is None or -1 in shape:
        ensure(False, "the attribute 'value_shape' has sizes that are not known.")
    return shape or ()


def _make(node: Node, attributes: Attributes, *, is_static: bool, of_tensors: bool) -> Table:
    refused = {}
    for tensor, what in zip(node.inputs, ("empty_key", "deleted_key")):
        refused[tensor.data.item()] = what
    ensure(len(refused) == len(node.inputs), "the empty_key and the deleted_key are the same; they must differ.")
    keys, values = table_types(attributes)
    return Table(keys, values, _value_shape(attributes) if of_tensors else (), is_static=is_static, refused=refused)


def _registration(*, static: bool = False, tensors: bool = False, markers: int = 0, anonymous: bool = False) -> Registration:
    def prepare(context: Context, node: Node) -> None:
        attributes = checked_attributes(node, markers)
        table_types(attributes)
        if tensors:
            _value_shape(attributes)
        for tensor in node.inputs:
            attributes.ensure_type("key_dtype", tensor)
        ensure(
            all(not tensor.ndim for tensor in node.inputs),
            "the empty_key and the deleted_key must be one key, a scalar: keys that are vectors are not served here.",
        )
        gives_handle(context, node.outputs[0])
        node.prepared = attributes

    def bind(context: Context, node: Node) -> Thunk:
        attributes, output = node.prepared, node.outputs[0].data
        make: Callable[[], Table] = partial(_make, node, attributes, is_static=static, of_tensors=tensors)

        def run() -> None:
            output[()] = make() if anonymous else find_or_make(context, node, attributes, make)

        return run

    return Registration(prepare=prepare, bind=bind)


HASHTABLEV2 = _registration(static=True)
MUTABLEHASHTABLEV2 = _registration()
MUTABLEHASHTABLEOFTENSORSV2 = _registration(tensors=True)
MUTABLEDENSEHASHTABLEV2 = _registration(tensors=True, markers=2)
ANONYMOUSHASHTABLE = _registration(static=True, anonymous=True)
ANONYMOUSMUTABLEHASHTABLE = _registration(anonymous=True)
ANONYMOUSMUTABLEHASHTABLEOFTENSORS = _registration(tensors=True, anonymous=True)
ANONYMOUSMUTABLEDENSEHASHTABLE = _registration(tensors=True, markers=2, anonymous=True)
