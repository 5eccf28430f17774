"""The work of each node of an interpreter: multiply-adds, operations and bytes, as the packages of the ops count them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from oplet import Work, WorkTable

if TYPE_CHECKING:
    from oplet import DelegateParams, Interpreter, PluginManager, Tensor

__all__ = ["work_of_nodes"]


def work_of_nodes(interpreter: Interpreter, plugins: PluginManager | None = None) -> dict[tuple[int, int], Work]:
    """Return the work of one run of each node, by the index of its subgraph and its own.

    Nodes that a delegate has replaced are in it as well as its kernels, whose multiply-adds and operations are the sums of what is known of
    theirs, and whose bytes are those that cross the partition's boundary and its constants'.

    Args:
        interpreter: its tensors have their present shapes: those of the model before `allocate_tensors`, and of tensors whose shapes depend on
            values, those of the last run.
        plugins: the plugins whose counts are used; all installed ones by default.
    """
    from oplet.toolkit import default_manager

    table = (plugins or default_manager()).work_table()
    return {
        (subgraph.index, node.index): (
            table.work(node) if (kernel := subgraph.kernels.get(node.index)) is None else _of_kernel(kernel, table)
        )
        for subgraph in interpreter.subgraphs
        for node in subgraph.nodes
    }


def _of_kernel(kernel: DelegateParams, table: WorkTable) -> Work:
    parts = [table.work(each) for each in kernel.nodes]
    macs = [part.macs for part in parts if part.macs is not None]
    operations = [part.operations for part in parts if part.operations is not None]
    return Work(
        sum(macs) if macs else None,
        sum(operations) if operations else None,
        _bytes_of(kernel.input_tensors),
        _bytes_of(kernel.output_tensors),
    )


def _bytes_of(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of the tensors in memory, each once."""
    return sum(tensor.nbytes for tensor in {id(tensor): tensor for tensor in tensors}.values())
