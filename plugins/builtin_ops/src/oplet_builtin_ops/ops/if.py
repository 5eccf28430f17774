"""IF: run one of two subgraphs, by a boolean. Behaviour: tflite/kernels/if.cc."""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.schema.options import IfOptions
from oplet_builtin_ops.control.calls import Call, prepare_branches, prepare_callee


def prepare(context: Context, node: Node) -> None:
    """Prepare the two branches of an IF node for the inputs after the condition."""
    ensure(node.has_input(0), "IF takes a condition as its first input, this node has none.")
    condition = node.inputs[0]
    ensure_type(condition, TensorType.BOOL)
    ensure(condition.size == 1, f"the condition {condition} has {condition.size} values; IF takes one.")
    options = node.options(IfOptions)
    callees = [
        prepare_callee(context, index, role, node.inputs[1:], len(node.outputs))
        for role, index in (("then", options.then_subgraph_index), ("else", options.else_subgraph_index))
    ]
    node.prepared = callees, prepare_branches(context, callees, node.outputs)


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that runs one of the two branches of an IF node, as the condition decides."""
    callees, dynamic = node.prepared
    then, otherwise = (Call(context, callee, node.inputs[1:], node.outputs, dynamic=dynamic) for callee in callees)
    condition = node.inputs[0].data.reshape(-1)

    def run() -> None:
        if condition[0]:
            then()
        else:
            otherwise()

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind)
