"""Near ties: outputs that select among values (indices, sorted rows, boxes) may select another of two nearly equal values.

Such an output then differs by as much as the alternatives are apart, however close the values were. It is accepted if each node, run by itself
on the same values, gives the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from oplet import Interpreter, Node
from oplet.schema.enums import TensorType
from oplet_tools.comparing.boundaries import ComparedTensor

__all__ = ["accept_near_ties"]

_CHOOSING = frozenset(
    [
        "ARG_MAX",
        "ARG_MIN",
        "TOPK_V2",
        "NON_MAX_SUPPRESSION_V4",
        "NON_MAX_SUPPRESSION_V5",
        "UNIQUE",
        "WHERE",
        "TFLite_Detection_PostProcess",
        "FLOOR",
        "CEIL",
        "ROUND",
        "SIGN",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "BUCKETIZE",
        "HASHTABLE_LOOKUP",
        "IF",
        "WHILE",
        "STABLEHLO_SORT",
        "STABLEHLO_COMPARE",
        "STABLEHLO_WHILE",
        "STABLEHLO_CASE",
        "LSH_PROJECTION",
        "MULTINOMIAL",
    ]
)
_WHOLE = (TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.STRING)
_NOTE = "another choice among nearly equal values: on the same values each node gives the same"


def accept_near_ties(
    outputs: Sequence[ComparedTensor], baseline: Interpreter, details: Mapping[str, Mapping[str, Any]], nodes_agree: bool
) -> list[ComparedTensor]:
    """Return the outputs, with those marked as passed that differ only because two nearly equal values were ranked differently.

    Args:
        outputs: the compared outputs.
        baseline: the baseline's interpreter.
        details: each output's dictionary of `Interpreter.get_output_details`, by name.
        nodes_agree: whether all nodes or partitions agree when run separately on the same inputs.
    """
    if not nodes_agree:
        return list(outputs)
    chosen = _chosen_tensors(baseline)
    return [
        replace(layer, difference=replace(layer.difference, passed=True), note=_NOTE)
        if not layer.difference.passed
        and not layer.difference.nonfinite_differing
        and not layer.difference.why.startswith("the type")
        and int(details[layer.name]["index"]) in chosen
        else layer
        for layer in outputs
    ]


def _chosen_tensors(baseline: Interpreter) -> set[int]:
    """Return the indices of output tensors, of all subgraphs, that depend on a selection among values.

    A comparison of numbers counts as a selection for boolean and integer tensors that follow from it, but not for floats: a
    SELECT between the branches of a function such as ELU gives nearly equal values on both sides of the threshold.
    """
    found: set[int] = set()
    for subgraph in baseline.subgraphs:
        chosen: set[int] = set()
        compared: set[int] = set()
        for index in subgraph.execution_plan:
            node = subgraph.nodes[index]
            read = {tensor.index for tensor in node.inputs if tensor is not None}
            if node.op_name in _CHOOSING or read & chosen or _makes(_WHOLE, node):
                chosen.update(tensor.index for tensor in node.outputs)
            elif read & compared or _makes((TensorType.BOOL,), node):
                compared.update(tensor.index for tensor in node.outputs if tensor.type in (TensorType.BOOL, *_WHOLE))
        found |= (chosen | compared) & set(subgraph.outputs)
    return found


def _makes(types: Collection[TensorType], node: Node) -> bool:
    """Return whether a node reads a float32 tensor that is not constant, and writes a tensor of one of these types."""
    real = any(tensor is not None and tensor.type is TensorType.FLOAT32 and not tensor.is_constant for tensor in node.inputs)
    return real and any(tensor.type in types for tensor in node.outputs)
