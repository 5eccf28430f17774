"""The work of nodes: how many multiply-adds, other operations and bytes a node takes, whichever kernel runs it.

The packages of the ops know it: a plugin's hook `register_work` adds a function per op to a `WorkTable`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

from oplet.errors import PluginError, failures
from oplet.ops.node import Node
from oplet.ops.serving.provenance import Composite
from oplet.ops.tensor import Tensor
from oplet.schema.enums import BuiltinOperator

__all__ = ["Work", "WorkTable", "bytes_of"]

#: The identity of an op in a table: a built-in operator's code, a custom op's name, or a composite.
_Key = BuiltinOperator | str | Composite


class Work(NamedTuple):
    """Work of one run of a node, counted from its tensors' shapes: multiply-adds, other operations and bytes.

    Attributes:
        macs: multiply-adds, those of convolutions and other products; None if unknown.
        operations: other operations on values, a function of a value being one; None if unknown.
        read: bytes that it reads; None for those of all inputs.
        written: bytes that it writes; None for those of all outputs.

    Examples:
        >>> Work(macs=1000, operations=10, read=300, written=100).flops
        2010
        >>> Work(macs=1000, operations=10, read=300, written=100).intensity
        5.025
    """

    macs: int | None = 0
    operations: int | None = 0
    read: int | None = None
    written: int | None = None

    @property
    def flops(self) -> int | None:
        """Operations, a multiply-add being two, of whatever type the values are; None if unknown."""
        return None if self.macs is None or self.operations is None else 2 * self.macs + self.operations

    @property
    def bytes(self) -> int:
        """Bytes that the node reads and writes."""
        return (self.read or 0) + (self.written or 0)

    @property
    def intensity(self) -> float | None:
        """The arithmetic intensity: operations per byte; None if either is unknown."""
        return None if self.flops is None or not self.bytes else self.flops / self.bytes


#: Counts the work of a node, whose tensors have their present shapes.
Count = Callable[[Node], Work]

_UNKNOWN = Work(None, None)


class WorkTable:
    """The functions that count the work (multiply-adds, other operations, bytes) of nodes, by op.

    Examples:
        >>> table = WorkTable()
        >>> table.add("Atan", lambda node: Work(operations=node.outputs[0].size))
    """

    def __init__(self) -> None:
        self.rows: dict[_Key, Count | str] = {}

    def add(self, ops: str | Composite | Iterable[str | Composite], count: Count | str) -> None:
        """Add a function for one op or several.

        Args:
            ops: a built-in operator's name ("CONV_2D"), a custom op's name, or a `Composite`; or several of them.
            count: takes a `Node` and gives its `Work`; or its "module:NAME", which is imported when it is needed.

        Raises:
            PluginError: an op has no name, or `count` cannot be called.
        """
        if not callable(count) and not (isinstance(count, str) and count.partition(":")[2]):
            raise PluginError(f"the work of {ops!r} is counted by {count!r}, which is neither a function nor 'module:NAME'")
        several: Iterable[object] = ops if isinstance(ops, Iterable) and not isinstance(ops, str) else [ops]
        for op in several:
            if not isinstance(op, (str, Composite)) or not op:
                raise PluginError(f"the work of {op!r} is to be counted; an operator's name is wanted")
            key = BuiltinOperator[op] if isinstance(op, str) and op in BuiltinOperator.__members__ else op
            self.rows[key] = count

    def merge(self, other: WorkTable) -> None:
        """Add the rows of another table, for ops that this one does not have."""
        for key, count in other.rows.items():
            self.rows.setdefault(key, count)

    def work(self, node: Node) -> Work:
        """Return the work of one run of a node.

        Its bytes are those of its inputs and outputs in memory, each tensor once, where its function does not say otherwise.
        Multiply-adds and operations are None for an op without a function here, and where the function fails.

        Args:
            node: a node of the model, with the shapes that its tensors have now.
        """
        found = _UNKNOWN
        count = self.rows.get(Composite(node.composite_name) if node.composite_name else _key(node))
        if count is not None:
            try:
                found = (_imported(count) if isinstance(count, str) else count)(node)
            except failures():  # a count is additional: what it is wrong about must not stop a profile
                found = _UNKNOWN
            if not isinstance(found, Work):
                found = _UNKNOWN
        return found._replace(
            read=bytes_of(node.inputs) if found.read is None else found.read,
            written=bytes_of(node.outputs) if found.written is None else found.written,
        )


def bytes_of(tensors: Iterable[Tensor | None]) -> int:
    """Return the bytes of the tensors in memory, each counted once."""
    return sum(tensor.nbytes for tensor in {id(tensor): tensor for tensor in tensors if tensor is not None}.values())


def _key(node: Node) -> _Key:
    return node.op_name if node.op is BuiltinOperator.CUSTOM else node.op


def _imported(path: str) -> Count:
    module, _, name = path.partition(":")
    count: Count = getattr(importlib.import_module(module), name)
    return count
