"""Randomly chosen parts of a model, and new values for their fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz import edge_values
from fuzz.choices import Choices
from oplet.ops.strings import bytes_needed
from oplet.schema import tables
from oplet.schema.enums import TensorType
from oplet.schema.table import Field, Table

__all__ = ["flip_field", "fresh", "refit", "some_constant", "some_index", "some_operator", "some_subgraph", "some_tensor"]

#: Largest buffer that a constant gets, in bytes; larger shapes are tested with tensors that are not constant.
_LARGEST_BUFFER = 1 << 20


def some_subgraph(choices: Choices, root: tables.Model) -> tables.SubGraph:
    subgraphs = root.subgraphs or ()
    return choices.choice(subgraphs) if subgraphs else tables.SubGraph()


def some_tensor(choices: Choices, root: tables.Model) -> tables.Tensor:
    tensors = some_subgraph(choices, root).tensors or ()
    return choices.choice(tensors) if tensors else tables.Tensor()


def some_operator(choices: Choices, root: tables.Model) -> tables.Operator:
    operators = some_subgraph(choices, root).operators or ()
    return choices.choice(operators) if operators else tables.Operator()


def some_constant(choices: Choices, root: tables.Model) -> tuple[tables.Tensor, tables.Buffer] | None:
    buffers = root.buffers or []
    found = [
        (tensor, buffers[tensor.buffer])
        for subgraph in root.subgraphs or []
        for tensor in subgraph.tensors or []
        if 0 < tensor.buffer < len(buffers) and buffers[tensor.buffer].data is not None
    ]
    return choices.choice(found) if found else None


def some_index(choices: Choices, count: int) -> int:
    """An index, mostly a valid one."""
    return choices.below(count) if count and choices.chance(85) else edge_values.int_value(choices, -(2**31), 2**31 - 1)


def flip_field(choices: Choices, table: Table, depth: int = 0) -> None:
    """Change one field of a table, or of a table below it."""
    if not table.fields:
        return
    field: Field = choices.choice(table.fields)
    value = getattr(table, field.name)
    deeper = value is not None and depth < 4 and choices.chance(75)
    if field.kind == "scalar":
        setattr(table, field.name, edge_values.scalar_value(choices, field, value))
    elif field.kind == "string":
        setattr(table, field.name, edge_values.text(choices))
    elif field.kind == "vector":
        setattr(table, field.name, edge_values.vector_value(choices, field.dtype, value))
    elif field.kind == "tables":
        if deeper and value:
            flip_field(choices, choices.choice(value), depth + 1)
        else:
            setattr(table, field.name, list_value(choices, field, value))
    elif deeper:
        flip_field(choices, value, depth + 1)
    elif field.kind == "table":
        setattr(table, field.name, None if value is not None or field.table is None else fresh(choices, field.table))
    else:
        members = list((field.members or {}).values())
        setattr(table, field.name, fresh(choices, choices.choice(members)) if choices.chance(70) else None)


def list_value(choices: Choices, field: Field, value: list[Any] | None) -> list[Any] | None:
    kind = choices.below(8)
    items = list(value or [])
    if kind == 0:
        return None
    if kind == 1:
        return []
    if kind == 2 and items:
        del items[choices.below(len(items))]
    elif kind == 3 and items:
        items.insert(choices.below(len(items) + 1), choices.choice(items))
    elif kind == 4 and len(items) > 1:
        i, j = choices.below(len(items)), choices.below(len(items))
        items[i], items[j] = items[j], items[i]
    elif kind == 5 and items:
        items = (items * 50)[:500]
    elif field.table is not None:
        items.append(fresh(choices, field.table))
    return items


def fresh(choices: Choices, cls: type[Table]) -> Table:
    """A new table with some fields set, mostly to plausible sizes and enum members."""
    table = cls()
    for field in cls.fields:
        if field.kind == "scalar" and choices.chance(80):
            if field.enum is not None:
                setattr(table, field.name, choices.choice(list(field.enum)))
            elif field.number == "bool":
                setattr(table, field.name, choices.chance(50))
            elif field.number == "float32":
                setattr(table, field.name, choices.choice((1.0, 0.5, edge_values.float_value(choices))))
            else:
                value = edge_values.small_int(choices)
                setattr(table, field.name, max(value, int(np.iinfo(field.dtype).min)))
        elif field.kind == "vector" and choices.chance(50):
            array = np.zeros(choices.below(5), field.dtype)
            edge_values.fill_array(choices, array)
            setattr(table, field.name, array)
    return table


def refit(choices: Choices, root: tables.Model, tensor: tables.Tensor) -> None:
    """Resize a constant's buffer to its shape and type."""
    buffers = root.buffers = root.buffers or []
    if not 0 < tensor.buffer < len(buffers):
        return
    shape = [] if tensor.shape is None else tensor.shape.tolist()
    if tensor.type not in TensorType.__members__.values() or min(shape, default=0) < 0:
        return
    needed = bytes_needed(shape, TensorType(tensor.type))
    data = buffers[tensor.buffer].data
    if needed is None or needed > _LARGEST_BUFFER or data is None or needed == data.size:
        return
    buffers.append(tables.Buffer(data=np.resize(data, needed) if data.size else np.zeros(needed, np.uint8)))
    tensor.buffer = len(buffers) - 1
