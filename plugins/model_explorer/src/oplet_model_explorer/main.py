"""The Model Explorer extensions: an adapter for models, and a provider of node data. Model Explorer imports this module."""

from __future__ import annotations

from typing import Any

from model_explorer import (
    Adapter,
    AdapterMetadata,
    GetConfigEditorsResult,
    ModelExplorerGraphs,
    NodeDataProvider,
    NodeDataProviderFilter,
    NodeDataProviderMetadata,
    NodeDataProviderResult,
    graph_builder,
    node_data_builder,
)

from oplet.errors import OpletError
from oplet_model_explorer.graphs import explored_graphs
from oplet_model_explorer.overlays import node_data

__all__ = ["OpletAdapter", "OpletNodeData"]

_ADAPTER = "oplet"


class OpletAdapter(Adapter):  # type: ignore[misc]
    """Model Explorer adapter for .tflite models as oplet runs them; delegates come from the environment, see `explored_graphs`."""

    metadata = AdapterMetadata(
        id=_ADAPTER,
        name="oplet",
        description="Who serves each node and why, and what delegates take",
        fileExts=["tflite"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """Convert a model to Model Explorer graphs.

        Raises:
            OpletError: the model is invalid, or a delegate cannot be created; the viewer shows the message.
        """
        return {"graphs": [graph_builder.Graph(**graph) for graph in explored_graphs(model_path)]}


class OpletNodeData(NodeDataProvider):  # type: ignore[misc]
    """Node data provider (times, packages, delegates, bytes) for graphs of `OpletAdapter`; it runs the model on random values."""

    metadata = NodeDataProviderMetadata(
        id="oplet_node_data",
        name="oplet: times, packages, delegates, memory",
        description="Runs the model on random values, and colours its nodes",
        icon="timer",
        filter=NodeDataProviderFilter(modelFileExts=["tflite"], adapterIds=[_ADAPTER]),
    )

    def get_config_editors(self, provider_id: str) -> GetConfigEditorsResult:
        """Return no settings: delegates come only from the environment, as a web page must not choose which libraries are loaded."""
        return GetConfigEditorsResult(configEditors=[])

    def run(
        self, provider_id: str, model_path: str, graph_id: str, config_values: dict[str, Any], graph: Any = None
    ) -> NodeDataProviderResult:
        """Return every kind of node data for one graph; a model error becomes the result's error."""
        try:
            kinds = node_data(explored_graphs(model_path, times=True))
        except OpletError as error:
            return NodeDataProviderResult(error=str(error))
        found = [_built(by_graph[graph_id]) for by_graph in kinds.values() if graph_id in by_graph]
        if not found:
            return NodeDataProviderResult(error=f"The model has no graph '{graph_id}' any more; load it again.")
        return NodeDataProviderResult(result=found)


def _built(data: dict[str, Any]) -> Any:
    results = {node: node_data_builder.NodeDataResult(**told) for node, told in data["results"].items()}
    stops = [node_data_builder.GradientItem(**stop) for stop in data.get("gradient", ())]
    return node_data_builder.GraphNodeData(**{**data, "results": results, "gradient": stops})
