"""Calls of subgraphs: IF (one of two, by a boolean), STABLEHLO_CASE (one of several, by index; the last one if it is out of range), CALL, and
STABLEHLO_COMPOSITE (an op that compilers know by name, as the subgraph that defines it, its decomposition).

Behaviour: tflite/kernels/if.cc, stablehlo_composite.cc, and stablehlo_case.cc, which however compares all subgraphs of the model.
LiteRT has no kernel for CALL; here it works as a decomposition.
"""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.schema.options import CallOptions, IfOptions
from oplet.schema.stablehlo_options import StablehloCaseOptions, StableHLOCompositeOptions
from oplet_builtin_ops.control.calls import Call, prepare_branches, prepare_callee


def _prepare_if(context: Context, node: Node) -> None:
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


def _bind_if(context: Context, node: Node) -> Callable[[], None]:
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


def _prepare_stablehlo_case(context: Context, node: Node) -> None:
    """Prepare every branch of a STABLEHLO_CASE node for the inputs after the index."""
    ensure(node.has_input(0), "STABLEHLO_CASE takes the branch's index as its first input, this node has none.")
    index = node.inputs[0]
    ensure_type(index, TensorType.INT32)
    ensure(index.size == 1, f"the index {index} has {index.size} values; STABLEHLO_CASE takes one.")
    branches = node.options(StablehloCaseOptions).branch_subgraph_indices
    ensure(branches is not None and branches.size, "branch_subgraph_indices is empty; there is nothing to choose from.")
    inputs, outputs = node.inputs[1:], node.outputs
    callees = []
    for branch in [] if branches is None else branches.tolist():
        callee = context.callee(branch)
        # A branch computes with the quantization of the node's tensors, whatever its own tensors have.
        for tensor, given in (*zip(callee.inputs, inputs), *zip(callee.outputs, outputs)):
            if given is not None:
                tensor.quantization = given.quantization
        callees.append(prepare_callee(context, branch, "branch", inputs, len(outputs)))
    node.prepared = callees, prepare_branches(context, callees, outputs)


def _bind_stablehlo_case(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that runs the branch of a STABLEHLO_CASE node that the index selects."""
    callees, dynamic = node.prepared
    calls = [Call(context, callee, node.inputs[1:], node.outputs, dynamic=dynamic) for callee in callees]
    index = node.inputs[0].data.reshape(-1)
    last = len(calls) - 1

    def run() -> None:
        number = index.item()
        calls[number if 0 <= number <= last else last]()

    return run


def _prepare_stablehlo_composite(context: Context, node: Node) -> None:
    """Prepare a composite node's decomposition subgraph for the node's inputs."""
    ensure(node.inputs, "STABLEHLO_COMPOSITE takes at least one input, this node has none.")
    options = node.options(StableHLOCompositeOptions)
    ensure(options.name is not None, "'stablehlo.composite' missing required option 'name'.")
    attributes = options.composite_attributes
    ensure(attributes is not None, "'stablehlo.composite' missing required option 'composite_attributes'.")
    index = options.decomposition_subgraph_index
    callee = prepare_callee(context, index, "decomposition", node.inputs, len(node.outputs))
    node.prepared = callee, prepare_branches(context, [callee], node.outputs)


def _bind_composite(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that runs the composite's decomposition subgraph."""
    callee, dynamic = node.prepared
    return Call(context, callee, node.inputs, node.outputs, dynamic=dynamic)


def _prepare_call(context: Context, node: Node) -> None:
    """Prepare the subgraph that a CALL node runs, for the node's inputs."""
    callee = prepare_callee(context, node.options(CallOptions).subgraph, "called", node.inputs, len(node.outputs))
    node.prepared = callee, bool(node.outputs) and prepare_branches(context, [callee], node.outputs)


IF = Registration(prepare=_prepare_if, bind=_bind_if)
STABLEHLO_CASE = Registration(
    prepare=_prepare_stablehlo_case,
    bind=_bind_stablehlo_case,
    differences="checks the node's own branches; LiteRT compares all subgraphs of the model",
)
STABLEHLO_COMPOSITE = Registration(
    prepare=_prepare_stablehlo_composite,
    bind=_bind_composite,
    decomposes=True,
    differences="needs no name and no attributes of the composite",
)
CALL = Registration(prepare=_prepare_call, bind=_bind_composite, differences="LiteRT has no kernel of it")
