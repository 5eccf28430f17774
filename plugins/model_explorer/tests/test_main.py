"""The two extensions, called as Model Explorer calls them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from oplet.errors import OpletError
from oplet_model_explorer import explored_graphs


def test_the_adapter_takes_tflite_files_and_gives_graphs(extensions: Any, digits: str) -> None:
    adapter = extensions.OpletAdapter()
    assert adapter.metadata.id == "oplet"
    assert adapter.metadata.fileExts == ["tflite"]
    [graph] = adapter.convert(digits, {})["graphs"]
    [wanted] = explored_graphs(digits)
    assert {name: value for name, value in asdict(graph).items() if name in wanted} == wanted


def test_the_adapter_raises_the_sentence_of_a_damaged_model(extensions: Any, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(b"no model at all")
    with pytest.raises(OpletError, match=r"damaged\.tflite"):
        extensions.OpletAdapter().convert(str(damaged), {})


def test_the_provider_is_offered_for_graphs_of_the_adapter_and_asks_for_nothing(extensions: Any) -> None:
    provider = extensions.OpletNodeData()
    assert provider.metadata.filter.adapterIds == [extensions.OpletAdapter.metadata.id]
    # What a page in a browser sends names no delegate: that would load libraries.
    assert provider.get_config_editors("oplet_node_data").configEditors == []


def test_the_provider_gives_every_kind_of_data_for_the_nodes_of_the_graph(
    extensions: Any, digits: str, timed: list[dict[str, Any]]
) -> None:
    graph = timed[0]
    found = extensions.OpletNodeData().run("oplet_node_data", digits, graph["id"], {"delegates": "nobody-has-this"})
    assert not found.error
    assert [data.name for data in found.result] == ["time, us", "share of the time, %", "package", "delegate", "bytes moved"]
    ids = {node["id"] for node in graph["nodes"]}
    for data in found.result:
        told = asdict(data)
        assert set() < told["results"].keys() <= ids
        assert bool(told["gradient"]) == (data.name not in ("package", "delegate"))


def test_errors_of_the_provider_are_results(extensions: Any, digits: str, tmp_path: Path) -> None:
    run = extensions.OpletNodeData().run
    assert "no graph '7 gone'" in run("oplet_node_data", digits, "7 gone", {}).error
    assert "nothing.tflite" in run("oplet_node_data", str(tmp_path / "nothing.tflite"), "0", {}).error
