"""STABLEHLO_COMPOSITE: an op that compilers know by name, run as the subgraph that defines it (its decomposition).

Behaviour: tflite/kernels/stablehlo_composite.cc.
"""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, ensure
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_builtin_ops.control.calls import Call, prepare_branches, prepare_callee


def prepare(context: Context, node: Node) -> None:
    """Prepare a composite node's decomposition subgraph for the node's inputs."""
    ensure(node.inputs, "STABLEHLO_COMPOSITE takes at least one input, this node has none.")
    options = node.options(StableHLOCompositeOptions)
    ensure(options.name is not None, "'stablehlo.composite' missing required option 'name'.")
    attributes = options.composite_attributes
    ensure(attributes is not None, "'stablehlo.composite' missing required option 'composite_attributes'.")
    index = options.decomposition_subgraph_index
    callee = prepare_callee(context, index, "decomposition", node.inputs, len(node.outputs))
    node.prepared = callee, prepare_branches(context, [callee], node.outputs)


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that runs the composite's decomposition subgraph."""
    callee, dynamic = node.prepared
    return Call(context, callee, node.inputs, node.outputs, dynamic=dynamic)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    decomposes=True,
    differences="needs no name and no attributes of the composite",
)
