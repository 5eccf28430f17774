"""STABLEHLO_WHILE: run a body subgraph as long as a condition subgraph returns true. LiteRT has no kernel for it; see WHILE."""

from __future__ import annotations

from oplet import Context, Node, Registration
from oplet.schema.stablehlo_options import StablehloWhileOptions
from oplet_builtin_ops.control.loops import bind_loop, prepare_loop


def prepare(context: Context, node: Node) -> None:
    """Prepare the condition and body of a STABLEHLO_WHILE node for the node's inputs."""
    options = node.options(StablehloWhileOptions)
    prepare_loop(context, node, options.cond_subgraph_index, options.body_subgraph_index)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind_loop,
    differences="LiteRT has no kernel of it",
)
