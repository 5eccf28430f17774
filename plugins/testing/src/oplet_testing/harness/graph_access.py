"""Access to an interpreter's primary subgraph: its nodes, their arrays, and changes that no caller of the public API can make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Allocation, Interpreter, Node, Tensor
from oplet.toolkit import Subgraph, SubgraphRunner, unshare_plan
from oplet_testing.harness.runs import Values, allocate, feed

__all__ = [
    "graph",
    "graph_inputs",
    "keep_plan",
    "make_constant",
    "node_state",
    "plan",
    "prepare_again",
    "replace_memory",
    "write_over",
    "writeable_arrays",
]


def graph(interpreter: Interpreter) -> Subgraph:
    """Return the interpreter's primary subgraph."""
    return interpreter.subgraphs[0]


def keep_plan(interpreter: Interpreter) -> Interpreter:
    """Keep the interpreter away from the plan cache, so that it neither takes a prepared execution plan from it nor stores its
    own: a test may change parts of the plan. Return the interpreter.
    """
    unshare_plan(interpreter)
    return interpreter


def plan(interpreter: Interpreter) -> list[Node]:
    """Return the nodes of the primary subgraph's execution plan, in the order in which they run."""
    subgraph = graph(interpreter)
    return [subgraph.nodes[index] for index in subgraph.execution_plan]


def graph_inputs(interpreter: Interpreter) -> list[Tensor]:
    """Return the primary subgraph's input tensors."""
    subgraph = graph(interpreter)
    return [subgraph.tensors[index] for index in subgraph.inputs]


def node_state(interpreter: Interpreter) -> list[Any]:
    """Return what each node's `prepare` decided: types and shapes of its outputs and temporaries."""
    return [
        ([(t.type.name, t.shape) for t in node.outputs], [(t.type.name, t.shape) for t in node.temporaries])
        for node in plan(interpreter)
    ]


def writeable_arrays(interpreter: Interpreter) -> list[NDArray[Any]]:
    """Return the current arrays of the inputs and of the nodes' outputs, except constants and arrays of objects."""
    tensors = [*graph_inputs(interpreter), *(t for node in plan(interpreter) for t in node.outputs)]
    return [t.data for t in tensors if t.has_data and t.data.flags.writeable and not t.data.dtype.hasobject]


def prepare_again(interpreter: Interpreter) -> None:
    """Prepare all nodes, plan memory and bind kernels to their arrays once more, for the same shapes."""
    graph(interpreter).invalidate()
    interpreter.allocate_tensors()


def replace_memory(interpreter: Interpreter) -> None:
    """Release the memory of all tensors, so that the next allocation gives each another array."""
    interpreter.release_non_persistent_memory()


def make_constant(tensor: Tensor, value: NDArray[Any]) -> bool:
    """Turn an input tensor into a constant; return False where that is impossible: for a variable, or if the shape differs."""
    if tensor.is_variable or tensor.shape != value.shape:
        return False
    # An array that owns its memory: a kernel that sets its flag to write again would succeed, and be found out.
    data = np.array(value, tensor.dtype)
    data.flags.writeable = False
    tensor.allocation = Allocation.COMPUTED
    tensor.set_memory(data)
    return True


def write_over(interpreter: Interpreter, values: Values, number: int) -> bool:
    """Allocate a model of one node so that the node writes its output over an input, one of those that `node.in_place` permits;
    set the inputs.

    Args:
        number: which of the permitted inputs to write over, counted from 0.

    Returns:
        Whether there is such an input; if not, the inputs are not set.
    """
    keep_plan(interpreter)  # which no other interpreter may take over, changed as it is below
    allocate(interpreter, values)
    nodes, segments = plan(interpreter), graph(interpreter).segments
    if len(nodes) != 1 or len(segments) != 1 or not segments[0].thunks:
        return False
    (node,), output = nodes, nodes[0].outputs[0]
    if output.is_dynamic or output.dtype.hasobject:
        return False
    inputs = graph_inputs(interpreter)
    given = [t for t in node.in_place if t in inputs and t.nbytes == output.nbytes and not t.is_variable]
    if number >= len(given):
        return False
    output.set_memory(given[number].data.reshape(-1).view(output.dtype).reshape(output.shape))
    SubgraphRunner(interpreter).bind_alone(node)
    feed(interpreter, values)
    return True
