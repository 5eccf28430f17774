"""Ops that create tables: HashTableV2, MutableHashTableV2, MutableHashTableOfTensorsV2, MutableDenseHashTableV2, anonymous ones.

A HashTable is filled once. The anonymous operators give a new table whenever they run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Shape, Thunk
from oplet_flex_ops.attributes import Attributes, checked_attributes
from oplet_flex_ops.tables import Table, find_or_make, gives_handle, table_types


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
