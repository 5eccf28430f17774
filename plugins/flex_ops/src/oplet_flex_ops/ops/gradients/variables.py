"""Ops on resource variables: create, read, assign, gather, scatter. Behaviour: tensorflow/core/kernels/resource_variable_ops.cc.

Variables belong to an interpreter, and are released with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.limits import kept_array, kept_copy
from oplet.kernels.operands import ensure_operands
from oplet_flex_ops.attributes import attributes_of
from oplet_flex_ops.numerics.operator import quietly
from oplet_flex_ops.numerics.resources import Variable, find, value_of, variable_named
from oplet_flex_ops.numerics.types import EVERY, INDEX, NUMBERS
from oplet_flex_ops.signature import Signature, Types

_RESOURCE, _BOOL = TensorType.RESOURCE, TensorType.BOOL
_TYPES = (*EVERY, TensorType.STRING)


def _registration(text: str, run: Callable[[Context, Node], None], *, dynamic: bool = False, **types: Types) -> Registration:
    """Build the registration of a variable op; with `dynamic`, `run` resizes its output."""
    signature = Signature(text, types)

    def prepare(context: Context, node: Node) -> None:
        signature.ensure(node)
        for output in node.outputs:
            if dynamic:
                context.set_dynamic(output)
            else:
                context.resize_tensor(output, ())

    def bind(context: Context, node: Node) -> Thunk:
        return quietly(lambda: run(context, node))

    return Registration(prepare=prepare, bind=bind, types=(_RESOURCE,))


def _handle() -> Registration:
    """Build VarHandleOp: the variable named by `container` and `shared_name`, the node's own if that is empty."""

    def prepare(context: Context, node: Node) -> None:
        ensure_operands(node, 0)
        attributes = attributes_of(node)
        type = attributes.type("dtype", *_TYPES)
        ensure(node.outputs[0].type is _RESOURCE, f"{node.outputs[0]} takes a handle; it must be of type RESOURCE.")
        name = attributes.text("shared_name", default="")
        if name:
            node.prepared = variable_named(context, attributes.text("container", default=""), name, type)
        else:
            node.prepared = node.cached("variable", (), lambda: Variable(type))
        context.resize_tensor(node.outputs[0], ())

    def bind(context: Context, node: Node) -> Thunk:
        output, variable = node.outputs[0].data, node.prepared

        def run() -> None:
            output[()] = variable

        return run

    return Registration(prepare=prepare, bind=bind, types=(_RESOURCE,))


def _give(context: Context, node: Node, value: Array) -> None:
    context.resize_tensor(node.outputs[0], value.shape)
    node.outputs[0].data[...] = value


def _read(context: Context, node: Node) -> None:
    _give(context, node, value_of(context, node.inputs[0], node.outputs[0].type))


def _assign(context: Context, node: Node) -> None:
    handle, source = node.inputs
    variable = find(context, handle)
    ensure(
        variable.type is source.type or variable.value is None,
        f"the variable of {handle} is of type {variable.type.name}, not {source}.",
    )
    held = variable.value
    if held is not None and attributes_of(node).flag("validate_shape", default=False):
        ensure(held.shape == source.shape, f"the variable of {handle} has the shape {list(held.shape)}, not that of {source}.")
    if held is not None and held.shape == source.shape and variable.type is source.type and not held.dtype.hasobject:
        np.copyto(held, source.data)
    else:
        variable.type, variable.value = source.type, kept_copy(source.data)


def _change(function: Callable[[Array, Array, Array], Any]) -> Callable[[Context, Node], None]:
    def run(context: Context, node: Node) -> None:
        handle, change = node.inputs
        value = value_of(context, handle, change.type)
        ensure(value.shape == change.shape, f"the variable of {handle} has the shape {list(value.shape)}, not that of {change}.")
        function(value, change.data, value)

    return run


def _is_initialized(context: Context, node: Node) -> None:
    node.outputs[0].data[...] = find(context, node.inputs[0]).value is not None


def _shape(context: Context, node: Node) -> None:
    variable = find(context, node.inputs[0])
    _give(context, node, np.array(np.shape(value_of(context, node.inputs[0], variable.type)), node.outputs[0].dtype))


def rows_of(indices: Array, value: Array) -> Array:
    """Check that the indices are rows of a variable's value, and return them.

    Raises:
        EnsureError: an index is outside of the variable's rows.
    """
    ensure(value.ndim >= 1, "a variable without dimensions has no rows.")
    outside = (indices < 0) | (indices >= len(value))
    ensure(not outside.any(), lambda: f"the index {indices[outside][0]} is outside of the {len(value)} rows of the variable.")
    return indices


def _gather(context: Context, node: Node) -> None:
    handle, indices = node.inputs
    batch = attributes_of(node).integer("batch_dims", default=0)
    ensure(batch == 0, f"batch_dims is {batch}; ResourceGather takes 0 here.")
    value = value_of(context, handle, node.outputs[0].type)
    _give(context, node, value[rows_of(indices.data, value)])


def _scatter(function: Callable[[Array, Array, Array], Any]) -> Callable[[Context, Node], None]:
    def run(context: Context, node: Node) -> None:
        handle, indices, updates = node.inputs
        value = value_of(context, handle, updates.type)
        rows = rows_of(indices.data, value)
        wanted = (*rows.shape, *value.shape[1:])
        ensure(updates.shape in ((), wanted), f"{updates} must have the shape {list(wanted)} of the rows that {indices} names.")
        function(value, rows, np.broadcast_to(updates.data, wanted))

    return run


def _put(value: Array, rows: Array, updates: Array) -> None:
    value[rows] = updates


def _update(context: Context, node: Node) -> None:
    """Set rows of a variable; one of strings gets a new array, as its strings count with that."""
    variable = find(context, node.inputs[0])
    if variable.value is not None and variable.value.dtype.hasobject:
        before, variable.value = variable.value, np.array(variable.value)
        try:
            _scatter(_put)(context, node)
            variable.value = kept_array(variable.value)
        except BaseException:
            variable.value = before
            raise
    else:
        _scatter(_put)(context, node)


def _at(ufunc: np.ufunc) -> Callable[[Context, Node], None]:
    return _scatter(lambda value, rows, updates: ufunc.at(value, rows, updates))


def _destroy(context: Context, node: Node) -> None:
    find(context, node.inputs[0]).value = None


def _change_op(function: np.ufunc) -> Registration:
    return _registration("RESOURCE, dtype -> ", _change(function), dtype=NUMBERS)


def _scatter_op(function: np.ufunc) -> Registration:
    return _registration("RESOURCE, Tindices, dtype -> ", _at(function), dtype=NUMBERS, Tindices=INDEX)


ASSIGNADDVARIABLEOP = _change_op(np.add)
ASSIGNSUBVARIABLEOP = _change_op(np.subtract)
ASSIGNVARIABLEOP = _registration("RESOURCE, dtype -> ", _assign, dtype=_TYPES)
DESTROYRESOURCEOP = _registration("RESOURCE -> ", _destroy)
READVARIABLEOP = _registration("RESOURCE -> dtype", _read, dynamic=True, dtype=_TYPES)
RESOURCEGATHER = _registration("RESOURCE, Tindices -> dtype", _gather, dynamic=True, dtype=_TYPES, Tindices=INDEX)
RESOURCESCATTERADD = _scatter_op(np.add)
RESOURCESCATTERDIV = _scatter_op(np.divide)
RESOURCESCATTERMAX = _scatter_op(np.maximum)
RESOURCESCATTERMIN = _scatter_op(np.minimum)
RESOURCESCATTERMUL = _scatter_op(np.multiply)
RESOURCESCATTERSUB = _scatter_op(np.subtract)
RESOURCESCATTERUPDATE = _registration("RESOURCE, Tindices, dtype -> ", _update, dtype=_TYPES, Tindices=INDEX)
VARIABLESHAPE = _registration("RESOURCE -> out_type=INT32", _shape, dynamic=True, out_type=INDEX)
VARHANDLEOP = _handle()
VARISINITIALIZEDOP = _registration("RESOURCE -> BOOL", _is_initialized)
