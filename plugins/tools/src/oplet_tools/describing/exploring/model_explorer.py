"""A model's graph in the JSON that Google's Model Explorer opens, written without it.

Source of the format: model_explorer/graph_builder.py of google-ai-edge/model-explorer, the package ai-edge-model-explorer 0.1.34.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from oplet.texts import shown
from oplet_tools.describing.exploring.graph import ExploredModel, ExploredNode, ExploredSubgraph, ExploredTensor, Group

__all__ = ["graph_collection", "graph_id", "model_explorer_json", "node_id"]

#: Colours of partitions' layers, used in turn.
_COLOURS = ("#d7e8fb", "#fde2c8", "#dff2d8", "#f3d9ee", "#fff3bf", "#d5f0ee")
#: Ids of the nodes that stand for a graph's inputs and outputs; Model Explorer knows their labels.
_INPUTS, _OUTPUTS = "inputs", "outputs"


def model_explorer_json(model: ExploredModel) -> bytes:
    """Return the file that Model Explorer opens: one collection of graphs, a graph for each subgraph."""
    return json.dumps(graph_collection(model), indent=1).encode("ascii")


def graph_collection(model: ExploredModel) -> dict[str, Any]:
    """Return the collection of graphs as dictionaries, with the keys of Model Explorer's classes: GraphCollection, Graph,
    GraphNode and so on.
    """
    return {"label": shown(os.path.basename(model.file)), "graphs": [_graph(model, subgraph) for subgraph in model.subgraphs]}


def graph_id(subgraph: ExploredSubgraph) -> str:
    """Return the id that a subgraph's graph has in the collection."""
    return f"{subgraph.index} {shown(subgraph.name)}".strip()


def node_id(node: int) -> str:
    """Return the id that a node has in the graph of its subgraph."""
    return f"n{node}"


def _graph(model: ExploredModel, subgraph: ExploredSubgraph) -> dict[str, Any]:
    ids = {other.index: graph_id(other) for other in model.subgraphs}
    groups = subgraph.partition_groups or subgraph.groups
    spaces = _namespaces(groups)
    homes = {node: spaces[group.id] for group in groups for node in group.nodes}
    makers = {tensor: (_INPUTS, place) for place, tensor in enumerate(subgraph.inputs)}
    nodes = [_port(_INPUTS, "GraphInputs", outputsMetadata=_tensors(subgraph, subgraph.inputs))]
    for node in subgraph.nodes:
        if node.folded:
            continue
        nodes.append(
            {
                "id": node_id(node.index),
                "label": shown(node.op),
                "namespace": homes.get(node.index, ""),
                "subgraphIds": [ids[called] for called in node.calls if called in ids],
                "attrs": _attributes(node),
                "incomingEdges": _edges(makers, node.inputs),
                "inputsMetadata": _tensors(subgraph, node.inputs),
                "outputsMetadata": _tensors(subgraph, node.outputs),
            }
        )
        makers.update((tensor, (node_id(node.index), place)) for place, tensor in enumerate(node.outputs))
    nodes.append(_port(_OUTPUTS, "GraphOutputs", incomingEdges=_edges(makers, subgraph.outputs)))
    return {
        "id": graph_id(subgraph),
        "nodes": nodes,
        "groupNodeAttributes": _group_attributes(model, subgraph, groups, spaces),
        "groupNodeConfigs": [
            {
                "namespaceRegex": f"^{re.escape(spaces[group.id])}$",
                "backgroundColor": _COLOURS[group.partition % len(_COLOURS)],
            }
            for group in groups
            if group.partition is not None
        ],
    }


def _namespaces(groups: Sequence[Group]) -> dict[int, str]:
    """Return the "/"-joined path of each group, by its id; slashes in labels stay, as Model Explorer makes levels of them."""
    paths: dict[int, str] = {}
    for group in groups:
        label = shown(group.label)
        paths[group.id] = label if group.parent is None else f"{paths[group.parent]}/{label}"
    return paths


def _port(id: str, label: str, **parts: Any) -> dict[str, Any]:
    return {"id": id, "label": label, "namespace": label, **parts}


def _edges(makers: dict[int, tuple[str, int]], tensors: Sequence[int]) -> list[dict[str, str]]:
    return [
        {"sourceNodeId": makers[tensor][0], "sourceNodeOutputId": str(makers[tensor][1]), "targetNodeInputId": str(place)}
        for place, tensor in enumerate(tensors)
        if tensor in makers
    ]


def _attributes(node: ExploredNode) -> list[dict[str, str]]:
    told: dict[str, object] = {
        "node": node.index,
        "op version": node.version,
        "served by": node.served_by,
        "without delegates": f"{node.package} {node.package_version}".strip() if node.delegate else "",
        "why": node.why,
        **{f"why {delegate} leaves it": reason or "no reason given" for delegate, reason in node.left.items()},
        "composite": node.composite,
        "inlined from": node.origin,
        "multiply-adds": "" if node.macs is None else f"{node.macs:,}",
        "bytes read": f"{node.bytes_read:,}",
        "bytes written": f"{node.bytes_written:,}",
        "microseconds": "" if node.seconds is None else f"{node.seconds * 1e6:,.1f}",
        "share of the time": "" if node.share is None else f"{node.share:.1%}",
        **{f"option {name}": value for name, value in node.options.items()},
    }
    return _pairs(told)


def _tensors(subgraph: ExploredSubgraph, tensors: Iterable[int]) -> list[dict[str, Any]]:
    return [
        {"id": str(place), "attrs": _tensor(subgraph.tensors[tensor])}
        for place, tensor in enumerate(tensors)
        if tensor in subgraph.tensors
    ]


def _tensor(tensor: ExploredTensor) -> list[dict[str, str]]:
    quantization = tensor.quantization
    quantized = ""
    if quantization is not None:
        scales = ", ".join(f"{scale:.6g}" for scale in quantization["scales"])
        points = ", ".join(map(str, quantization["zero_points"]))
        quantized = f"scale {scales}; zero point {points}; {quantization['count']} in all"
    return _pairs(
        {
            "__tensor_tag": shown(tensor.name),
            "tensor_index": tensor.index,
            "tensor_name": shown(tensor.name),
            "tensor_shape": f"{tensor.type.lower()}[{','.join(map(str, tensor.shape))}]",
            "bytes": "" if tensor.bytes is None else f"{tensor.bytes:,}",
            "constant": "yes" if tensor.constant else "",
            "variable": "yes" if tensor.variable else "",
            "quantization": quantized,
        }
    )


def _group_attributes(
    model: ExploredModel, subgraph: ExploredSubgraph, groups: Sequence[Group], spaces: dict[int, str]
) -> dict[str, dict[str, str]]:
    claimed = sum(len(partition.nodes) for partition in subgraph.partitions)
    whole = {"delegates": ", ".join(model.delegates) or "none", "nodes": len(subgraph.nodes), "claimed": claimed}
    whole |= {f"{name} is not in force": error for name, error in subgraph.errors.items()}
    partitions = {partition.index: partition for partition in subgraph.partitions}
    told: dict[str, dict[str, str]] = {"": {name: str(value) for name, value in whole.items()}}
    for group in groups:
        if group.partition is None:
            continue
        partition = partitions[group.partition]
        seconds = subgraph.partition_seconds.get(partition.index)
        told[spaces[group.id]] = {
            "delegate": partition.delegate,
            "nodes": str(len(partition.nodes)),
            "bytes in": f"{partition.inputs.bytes:,}",
            "bytes out": f"{partition.outputs.bytes:,}",
            "bytes of constants": f"{partition.constants.bytes:,}",
        } | ({} if seconds is None else {"microseconds": f"{seconds * 1e6:,.1f}"})
    return told


def _pairs(values: dict[str, object]) -> list[dict[str, str]]:
    return [{"key": key, "value": str(value)} for key, value in values.items() if value not in ("", None)]
