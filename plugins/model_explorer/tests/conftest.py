"""What the tests of the extensions share: models, and Model Explorer or, where it is not installed, classes like those that it gives extensions."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field, make_dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from oplet import ModelBuilder
from oplet_model_explorer import explored_graphs

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "digits"
#: Names that must stay text wherever they are shown.
HOSTILE = ("<script>alert(1)</script>", "\"'/../a/b", "x" * 10_000, "\x1b[31m\u202e\x00 \n</textarea>", "^(a+)+$")


@pytest.fixture(scope="session", autouse=True)
def kernels() -> None:
    pytest.importorskip("oplet_builtin_ops")


@pytest.fixture(scope="session")
def digits() -> str:
    """A model of real values that tells digits apart."""
    return str(EXAMPLES / "digits_float32.tflite")


@pytest.fixture(scope="session")
def timed(digits: str) -> list[dict[str, Any]]:
    """Its graphs, with times, without delegates."""
    return explored_graphs(digits, (), times=True)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A chain of ABS whose tensors and subgraph have hostile names."""
    builder = ModelBuilder()
    main = builder.add_subgraph(HOSTILE[0])
    tensors = [main.add_tensor(name, "float32", [1, 2]) for name in (*HOSTILE, "end")]
    for source, target in pairwise(tensors):
        main.add_operator("ABS", [source], [target])
    main.set_inputs(tensors[0])
    main.set_outputs(tensors[-1])
    path = tmp_path_factory.mktemp("hostile") / "<img src=x onerror=alert(1)>.tflite"
    path.write_bytes(builder.to_bytes())
    return str(path)


def stand_in() -> dict[str, ModuleType]:
    """The names of Model Explorer 0.1.34 that the extensions use, as far as they use them."""

    @dataclass
    class Graph:
        id: str
        nodes: list[Any] = field(default_factory=list)
        groupNodeAttributes: Any = None
        groupNodeConfigs: Any = None
        nodeLabelsToHide: Any = None
        tasksData: Any = None
        layoutConfigs: Any = None

    @dataclass
    class GraphNodeData:
        results: dict[str, Any]
        name: str | None = None
        thresholds: list[Any] = field(default_factory=list)
        gradient: list[Any] = field(default_factory=list)
        hideInAggregatedStatsTable: bool = False
        hideInChildrenStatsTable: bool = False
        hideAggregatedStats: Any = None
        showExpandedSummaryOnGroupNode: bool = False
        showLabelCountColumnsInChildrenStatsTable: bool = False

    def record(name: str, *fields: str) -> type:
        return make_dataclass(name, [(f, Any, field(default=None)) for f in fields])

    whole, graphs, data = map(ModuleType, ("model_explorer", "model_explorer.graph_builder", "model_explorer.node_data_builder"))
    graphs.__dict__.update(Graph=Graph)
    data.__dict__.update(
        GraphNodeData=GraphNodeData,
        NodeDataResult=record("NodeDataResult", "value", "bgColor", "textColor"),
        GradientItem=record("GradientItem", "stop", "bgColor", "textColor"),
    )
    metadata = "id", "name", "description", "source_repo"
    whole.__dict__.update(
        Adapter=type("Adapter", (), {}),
        AdapterMetadata=record("AdapterMetadata", *metadata, "fileExts"),
        ModelExplorerGraphs=dict,
        NodeDataProvider=type("NodeDataProvider", (), {}),
        NodeDataProviderMetadata=record("NodeDataProviderMetadata", *metadata, "icon", "filter"),
        NodeDataProviderFilter=record("NodeDataProviderFilter", "modelFileExts", "adapterIds"),
        NodeDataProviderResult=record("NodeDataProviderResult", "result", "error"),
        GetConfigEditorsResult=record("GetConfigEditorsResult", "configEditors", "error"),
        graph_builder=graphs,
        node_data_builder=data,
    )
    return {module.__name__: module for module in (whole, graphs, data)}


@pytest.fixture(scope="session")
def extensions() -> Any:
    """The module that Model Explorer loads."""
    if importlib.util.find_spec("model_explorer") is None:
        sys.modules.update(stand_in())
    from oplet_model_explorer import main

    return main
