"""WHILE: run a body subgraph as long as a condition subgraph returns true. See `oplet_builtin_ops.control.loops`."""

from __future__ import annotations

from oplet import Context, Node, Registration
from oplet.schema.options import WhileOptions
from oplet_builtin_ops.control.loops import bind_loop, prepare_loop


def prepare(context: Context, node: Node) -> None:
    """Prepare the condition and body of a WHILE node for the node's inputs."""
    options = node.options(WhileOptions)
    prepare_loop(context, node, options.cond_subgraph_index, options.body_subgraph_index)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind_loop,
    differences="loop variables may swap places, of which LiteRT overwrites one, and nested loops may share a condition subgraph",
)
