"""Node data: numbers and labels by which Model Explorer colours, sorts and aggregates nodes.

Source of the format: model_explorer/node_data_builder.py of google-ai-edge/model-explorer, the package ai-edge-model-explorer 0.1.34.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oplet import write_atomically

__all__ = ["node_data", "save_node_data"]

_HEAT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 0.3, "bgColor": "#ffd27f"}, {"stop": 1, "bgColor": "#d7301f"}]
#: Colours of words, used in turn; the labels on them are dark.
_COLOURS = ("#bcd7f5", "#fbd3a4", "#c3e8b6", "#e8c1e0", "#fdeb9e", "#b5e3df", "#f4b6b6", "#d5cbe8")
#: Colours of nodes that no delegate takes, and that nobody serves.
_SET_APART = {"none": "#f0f0f0", "nobody": "#ff7a6b"}

_Attributes = Mapping[str, str]


def node_data(graphs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return node data by kind, then by graph id, as dictionaries of Model Explorer's class `GraphNodeData`.

    The kinds are "time, us" and "share of the time, %" (both only if the graphs have times), "package", "delegate" and "bytes moved",
    those that a node reads and writes. Nodes that a delegate runs together have one time, at their layer: the time of each is not
    known.

    Args:
        graphs: the graphs, from `explored_graphs`.
    """
    makers: dict[str, Callable[[_Attributes], float | str | None]] = {
        "time, us": lambda told: _number(told.get("microseconds")),
        "share of the time, %": lambda told: _number(told.get("share of the time")),
        "package": _package,
        "delegate": lambda told: told.get("served by", "") if "without delegates" in told else "none",
        "bytes moved": lambda told: (_number(told.get("bytes read")) or 0) + (_number(told.get("bytes written")) or 0),
    }
    found = {}
    for kind, value_of in makers.items():
        values = {str(graph["id"]): _values(graph, value_of) for graph in graphs}
        if any(values.values()):
            words = sorted(
                {value for by_node in values.values() for value in by_node.values() if isinstance(value, str)} - {*_SET_APART}
            )
            colours = _SET_APART | {word: _COLOURS[place % len(_COLOURS)] for place, word in enumerate(words)}
            found[kind] = {id: _overlay(kind, by_node, colours) for id, by_node in values.items()}
    return found


def save_node_data(graphs: Sequence[Mapping[str, Any]], folder: str | os.PathLike[str]) -> list[Path]:
    """Write node data to a folder, one JSON file per kind, for `model-explorer --node_data_paths`; return the files.

    Args:
        graphs: the graphs, from `explored_graphs`.
        folder: the folder, which exists.
    """
    written = []
    for kind, by_graph in node_data(graphs).items():
        path = Path(folder, f"{kind.partition(',')[0].replace(' ', '-')}.json")
        write_atomically(path, json.dumps(by_graph))
        written.append(path)
    return written


def _values(graph: Mapping[str, Any], value_of: Callable[[_Attributes], float | str | None]) -> dict[str, float | str]:
    found = {}
    for node in graph["nodes"]:
        told = {pair["key"]: pair["value"] for pair in node.get("attrs", ())}
        value = value_of(told) if "node" in told else None  # inputs and outputs are no nodes
        if value is not None:
            found[node["id"]] = value
    return found


def _overlay(kind: str, values: Mapping[str, float | str], colours: Mapping[str, str]) -> dict[str, Any]:
    if not any(isinstance(value, str) for value in values.values()):
        return {"name": kind, "results": {node: {"value": value} for node, value in values.items()}, "gradient": _HEAT}
    results = {node: {"value": value, "bgColor": colours[str(value)]} for node, value in values.items()}
    # Words have no sum and no average.
    return {"name": kind, "results": results, "hideInAggregatedStatsTable": True, "showExpandedSummaryOnGroupNode": True}


def _package(told: _Attributes) -> str:
    """Return the package that serves a node without delegates, without its version."""
    served = told.get("without delegates") or told.get("served by", "nobody")
    return served.partition(" ")[0]


def _number(text: str | None) -> float | None:
    return None if text is None else float(text.replace(",", "").rstrip("%"))
