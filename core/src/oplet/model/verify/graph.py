"""Verification of a subgraph's nodes: all references exist, and every tensor is written before it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any

from oplet.errors import ModelError
from oplet.model.model import Model
from oplet.schema import tables
from oplet.schema.columns import as_lazy_tables
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.schema.table import Table
from oplet.texts import shown

__all__ = ["unknown_member", "verify_graph"]


#: Types whose elements are objects, which plain memory cannot be.
_OBJECTS = frozenset({TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT})
#: The most nodes of a cycle that a message lists.
_LISTED = 10


def verify_graph(model: Model, subgraph: tables.SubGraph, constants: Iterable[int], where: str) -> None:
    """Check the nodes in order, then the subgraph's outputs.

    Args:
        model: the model.
        subgraph: the subgraph.
        constants: the indices of the tensors that have a value in the file.
        where: the subgraph in messages.

    Raises:
        ModelError: a rule is broken.
    """
    graph = _Graph(model, subgraph, where)
    if not graph.is_plain(constants):
        graph.verify()


class _Graph:
    def __init__(self, model: Model, subgraph: tables.SubGraph, where: str) -> None:
        self.model = model
        self.where = where
        self.codes = len(model.lazy_root.operator_codes or [])
        self.tensors = subgraph.tensors or ()
        self.lazy_operators = as_lazy_tables(subgraph.operators)
        self.inputs = set(_indices(subgraph.inputs))
        self.outputs = _indices(subgraph.outputs)
        self.writers: dict[int, int] = {}  # the node that writes each tensor

    @cached_property
    def operators(self) -> list[tables.Operator]:
        return self.lazy_operators.tables()

    @cached_property
    def written(self) -> set[int]:
        """The indices of the tensors that nodes write."""
        return {index for operator in self.operators for index in _indices(operator.outputs)}

    def is_plain(self, constants: Iterable[int]) -> bool:
        """Return whether all nodes pass a fast, vectorized check, as in most models; nodes that do not may still be valid."""
        lazy_operators = self.lazy_operators
        if max(lazy_operators.column("opcode_index"), default=-1) >= self.codes or lazy_operators.has_field("intermediates"):
            return False
        for options in (
            *lazy_operators.column("builtin_options"),
            *(lazy_operators.column("builtin_options_2") if lazy_operators.has_field("builtin_options_2") else ()),
        ):
            if options is not None and unknown_member(options) is not None:
                return False
        readable = {-1, *self.inputs, *constants}
        count = len(readable)
        for inputs, outputs in zip(lazy_operators.column("inputs"), lazy_operators.column("outputs")):
            if inputs and not readable.issuperset(inputs):
                return False
            if outputs:
                readable.update(outputs)
                count += len(outputs)
        # If every output is a tensor without an earlier value, no tensor is read too early or written twice.
        return (
            len(readable) == count
            and min(readable) >= -1
            and max(readable) < len(self.tensors)
            and readable.issuperset(self.outputs)
        )

    def verify(self) -> None:
        for number, operator in enumerate(self.operators):
            if operator.opcode_index >= self.codes:
                raise ModelError(
                    f"Missing registration for opcode_index {operator.opcode_index}. Node {number} of {self.where} refers to it; "
                    f"the model has {self.codes} operator codes."
                )
            for options in (operator.builtin_options, operator.builtin_options_2):
                if options is not None and (wrong := unknown_member(options)) is not None:
                    raise ModelError(f"{self.node(number)} {wrong}")
            inputs = _indices(operator.inputs)
            self.verify_inputs(number, inputs)
            self.verify_outputs(number, inputs if operator.builtin_options is not None else [], _indices(operator.outputs))
            for index in _indices(operator.intermediates):
                if not 0 <= index < len(self.tensors):
                    raise ModelError(f"{self.node(number)} has an intermediate at tensor {index}; {self.count()}.")
        for position, index in enumerate(self.outputs):
            if not self.has_value(index):
                missing = "" if self.operators else f" {self.where[0].upper()}{self.where[1:]} has no operators at all."
                raise ModelError(
                    f"Output tensor {index} lacks data. It is output {position} of {self.where} ('{self.name(index)}'), but no node "
                    f"writes it, and it is no input and no constant.{missing}"
                )

    def verify_inputs(self, number: int, inputs: list[int]) -> None:
        count, writers, given = len(self.tensors), self.writers, self.inputs
        for position, index in enumerate(inputs):
            if index in writers or index in given or index == -1:
                continue
            if not 0 <= index < count:
                raise ModelError(f"{self.node(number)} has input {position} at tensor {index}; {self.count()}.")
            if self.has_value(index) or self.is_scratch(number, index):
                continue
            raise self.never_written(number, index)

    def verify_outputs(self, number: int, inputs: list[int], outputs: list[int]) -> None:
        read = inputs if len(outputs) < 2 else set(inputs)
        tensors, writers = self.tensors, self.writers
        for position, index in enumerate(outputs):
            if not 0 <= index < len(tensors):
                raise ModelError(f"{self.node(number)} has output {position} at tensor {index}; {self.count()}.")
            if index in writers:
                raise self.written_twice(number, index, self.node(writers[index]))
            if index in read:
                raise self.overwrites(number, index)
            if index in self.inputs:
                raise ModelError(
                    f"{self.node(number)} writes tensor {index} ('{self.name(index)}'), which is an input of the graph."
                )
            writers[index] = number

    def has_value(self, index: int) -> bool:
        """Return whether a tensor has a value at this point of the check: an input, a constant, or written by an earlier node."""
        if index in self.writers or index in self.inputs:
            return True
        tensor = self.tensors[index]
        if tensor.is_variable:
            return True
        if index in self.written:  # whatever bytes it has in the file
            return False
        empty = tensor.shape is not None and not tensor.shape.all()  # an empty constant: nothing to read
        return empty or self.model.tensor_bytes(tensor) is not None

    def is_scratch(self, number: int, index: int) -> bool:
        """Return whether a tensor without a value is memory that node `number` is to get: of a custom op's inputs, one that no node
        writes. Compilers for accelerators (Vela, xcore) name the memory that their kernels work in so.
        """
        if index in self.written or self.tensors[index].type in _OBJECTS or not self.known(number):
            return False
        return self.model.op_of(self.operators[number])[0] is BuiltinOperator.CUSTOM

    def never_written(self, number: int, index: int) -> ModelError:
        """Return the error for node `number` whose input, tensor `index`, has no value: a cycle, a wrong order, or no writer."""
        late = {i: n for n, op in enumerate(self.operators) if n >= number for i in _indices(op.outputs)}
        writer = late.get(index)
        if writer == number:
            return self.overwrites(number, index)
        what = f"{self.node(number)} reads tensor {index} ('{self.name(index)}')"
        if writer is None:
            return ModelError(
                f"Input tensor {index} lacks data. {what}, but it is no input of the graph, no constant, and no node writes it."
            )
        if self.model.tensor_bytes(self.tensors[index]) is not None:
            return ModelError(
                f"{what}, which has bytes in the file and is written by node {writer} only later: in LiteRT it would be what the run "
                "before left there. Let the one read a constant of its own."
            )
        cycle = _path(number, writer, lambda node: [late[i] for i in _indices(self.operators[node].inputs) if i in late])
        if cycle is None:
            return ModelError(f"{what}, which node {writer} writes only later: the graph is out of order.")
        chain = [f"node {n} ({self.model.op_of(self.operators[n])[1]})" if self.known(n) else f"node {n}" for n in cycle]
        if len(chain) > _LISTED:
            chain[_LISTED // 2 : -_LISTED // 2] = [f"{len(chain) - _LISTED} more"]
        return ModelError(f"{what}, which node {writer} writes only later: the graph has a cycle, {' reads from '.join(chain)}.")

    def overwrites(self, number: int, index: int) -> ModelError:
        return ModelError(f"{self.node(number)}: Tensor {index} is both input and output ('{self.name(index)}').")

    def written_twice(self, number: int, index: int, first: str) -> ModelError:
        return ModelError(f"{self.node(number)} writes tensor {index} ('{self.name(index)}'), which {first} writes already.")

    def known(self, number: int) -> bool:
        return self.operators[number].opcode_index < self.codes

    def node(self, number: int) -> str:
        return f"Node {number} ({shown(self.model.op_of(self.operators[number])[1])}) of {self.where}"

    def name(self, index: int) -> str:
        return shown(self.tensors[index].name)

    def count(self) -> str:
        return f"the subgraph has {len(self.tensors)} tensors"


def _indices(vector: object) -> list[int]:
    return [] if vector is None else vector.tolist()  # type: ignore[attr-defined]


def _path(start: int, first: int, reads_from: Callable[[int], Sequence[int]]) -> list[int] | None:
    """Find a cycle from `start` via `first` back to `start`, in which each node reads from the next; None if there is none."""
    came_from = {first: start}
    waiting = [first]
    while waiting:
        node = waiting.pop()
        for source in reads_from(node):
            if source == start:
                path = [start, node]
                while path[-1] != first:
                    path.append(came_from[path[-1]])
                return [start, *reversed(path[1:]), start]
            if source not in came_from:
                came_from[source] = node
                waiting.append(source)
    return None


_ENUMS: dict[type[Table], tuple[tuple[str, type[IntEnum]], ...]] = {}


def unknown_member(options: Table) -> str | None:
    """Describe the first field of a node's options whose number its enumeration does not have; None if there is none."""
    cls: Any = type(options)
    for name, known in _enums(cls):
        value = getattr(options, name)
        if type(value) is int:  # a known number is decoded to a member
            return (
                f"has {cls.__name__} with {name} {value}, which is not one of {known.__name__}; this schema knows "
                f"{', '.join(f'{int(member)} ({member.name})' for member in known)}."
            )
    return None


def _enums(cls: type[Table]) -> tuple[tuple[str, type[IntEnum]], ...]:
    """Return the fields of an options table that are enumerations, with their types."""
    enums = _ENUMS.get(cls)
    if enums is None:
        enums = tuple((field.name, field.enum) for field in cls.fields if field.kind == "scalar" and field.enum is not None)
        _ENUMS[cls] = enums
    return enums
