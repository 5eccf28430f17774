"""STABLEHLO_CASE: run one of several subgraphs, by index; the last one if the index is out of range.

Behaviour: tflite/kernels/stablehlo_case.cc, which however compares all subgraphs of the model, branches or not.
"""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.schema.stablehlo_options import StablehloCaseOptions
from oplet_builtin_ops.control.calls import Call, prepare_branches, prepare_callee


def prepare(context: Context, node: Node) -> None:
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


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that runs the branch of a STABLEHLO_CASE node that the index selects."""
    callees, dynamic = node.prepared
    calls = [Call(context, callee, node.inputs[1:], node.outputs, dynamic=dynamic) for callee in callees]
    index = node.inputs[0].data.reshape(-1)
    last = len(calls) - 1

    def run() -> None:
        number = index.item()
        calls[number if 0 <= number <= last else last]()

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    differences="checks the node's own branches; LiteRT compares all subgraphs of the model",
)
