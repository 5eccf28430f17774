"""CALL: run a subgraph. The format has it, but LiteRT has no kernel for it; here it works as STABLEHLO_COMPOSITE's
decomposition.
"""

from __future__ import annotations

from oplet import Context, Node, Registration
from oplet.schema.options import CallOptions
from oplet_builtin_ops.control.calls import prepare_branches, prepare_callee
from oplet_builtin_ops.ops.stablehlo_composite import bind


def prepare(context: Context, node: Node) -> None:
    """Prepare the subgraph that a CALL node runs, for the node's inputs."""
    callee = prepare_callee(context, node.options(CallOptions).subgraph, "called", node.inputs, len(node.outputs))
    node.prepared = callee, bool(node.outputs) and prepare_branches(context, [callee], node.outputs)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    differences="LiteRT has no kernel of it",
)
