"""The work of each node of an interpreter: multiply-adds, operations and bytes, as the packages of the ops count them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oplet import Work, WorkTable
from oplet.toolkit import bytes_of

if TYPE_CHECKING:
    from oplet import DelegateParams, Interpreter, PluginManager

__all__ = ["work_of_nodes"]


def work_of_nodes(interpreter: Interpreter, plugins: PluginManager | None = None) -> dict[tuple[int, int], Work]:
    """Return the work (multiply-adds, other operations, bytes) of one run of each node, by (subgraph, node).

    It includes the nodes that a delegate has replaced, and the delegate's kernels. A kernel's multiply-adds and operations are the sums of
    those of its nodes, as far as known; its bytes are those of its constants and of tensors that cross the partition's boundary.

    Args:
        interpreter: the interpreter; its tensors' current shapes count: the model's before `allocate_tensors`, the last run's where they
            depend on values.
        plugins: the plugins that count the work of their ops; all installed ones by default.
    """
    from oplet.toolkit import default_manager

    table = (plugins or default_manager()).work_table()
    return {
        (subgraph.index, node.index): (
            table.work(node) if (kernel := subgraph.delegated.kernels.get(node.index)) is None else _of_kernel(kernel, table)
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
        bytes_of(kernel.input_tensors),
        bytes_of(kernel.output_tensors),
    )
