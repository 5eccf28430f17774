"""CALL_ONCE: run a subgraph at the first invoke of the interpreter, to fill variables and tables.

Behaviour: tflite/kernels/call_once.cc. Several nodes, in several signatures, may name the same subgraph.
"""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, ensure
from oplet.schema.options import CallOnceOptions


def prepare(context: Context, node: Node) -> None:
    """Check that the CALL_ONCE node and its subgraph have no inputs or outputs."""
    count = len(node.inputs), len(node.outputs)
    ensure(count == (0, 0), f"CALL_ONCE has no inputs and no outputs, this node has {count[0]} and {count[1]}.")
    callee = context.callee(node.options(CallOnceOptions).init_subgraph_index)
    count = len(callee.inputs), len(callee.outputs)
    ensure(count == (0, 0), f"CALL_ONCE calls {callee}, which has {count[0]} inputs and {count[1]} outputs; it must have none.")
    if not callee.initialized:
        callee.prepare()


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that runs the subgraph of CALL_ONCE the first time only."""
    callee = context.callee(node.options(CallOnceOptions).init_subgraph_index)

    def run() -> None:
        if not callee.initialized:
            callee.prepare()
            callee.bind()()
            callee.release()
            callee.initialized = True

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind)
