"""Graphs of a model: its nodes with who serves them, partitions as layers, and names that are text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oplet import Interpreter
from oplet.errors import OpletError
from oplet_model_explorer import DELEGATES_VARIABLE, explored_graphs


def attributes(node: dict[str, Any]) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in node.get("attrs", ())}


def texts(value: Any) -> Iterator[str]:
    """Every text in a value of JSON, keys included."""
    if isinstance(value, str):
        yield value
    for inner in [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


def test_each_node_says_who_serves_it_and_the_graph_is_connected(digits: str) -> None:
    [graph] = explored_graphs(digits, ())
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(nodes) == len(graph["nodes"])
    computed = [node for node in graph["nodes"] if "served by" in attributes(node)]
    interpreter = Interpreter(digits)
    assert {report.op for report in interpreter.explain()} >= {node["label"] for node in computed} > set()
    assert all(attributes(node)["served by"].startswith("oplet-") for node in computed)
    edges = [(edge["sourceNodeId"], node["id"]) for node in graph["nodes"] for edge in node.get("incomingEdges", ())]
    assert {source for source, _ in edges} <= nodes.keys()
    assert {node["id"] for node in computed} <= {target for _, target in edges}
    assert not any("microseconds" in attributes(node) for node in computed)


def test_times_are_measured_where_they_are_asked_for(timed: list[dict[str, Any]]) -> None:
    found = [attributes(node) for node in timed[0]["nodes"]]
    assert any("microseconds" in told and told["share of the time"].endswith("%") for told in found)


def test_delegates_are_those_of_the_environment_and_their_partitions_are_layers(
    digits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("oplet_example_delegate")
    monkeypatch.setenv(DELEGATES_VARIABLE, " example ;")
    [graph] = explored_graphs(digits)
    claimed = [node for node in graph["nodes"] if "without delegates" in attributes(node)]
    assert claimed
    assert all(node["namespace"].startswith("partition ") for node in claimed)
    assert all("example" in attributes(node)["served by"] for node in claimed)
    assert explored_graphs(digits, ["example"]) == [graph]


def test_hostile_names_are_printable_text_of_a_readable_length(hostile: str) -> None:
    graphs = explored_graphs(hostile, (), times=True)
    assert len(graphs) == 1
    found = [*texts(graphs)]
    assert all(text.isprintable() and len(text) < 1000 for text in found)
    assert any("<script>alert(1)</script>" in text for text in found), "names are shown, as what they are"


def test_a_damaged_model_and_an_unknown_delegate_are_told_in_one_sentence(tmp_path: Path, digits: str) -> None:
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(b"\0" * 100)
    with pytest.raises(OpletError, match=r"damaged\.tflite"):
        explored_graphs(damaged, ())
    with pytest.raises(OpletError, match="nobody-has-this"):
        explored_graphs(digits, ["nobody-has-this"])


def test_modules_beside_the_model_are_not_imported(tmp_path: Path, digits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the current folder ran')")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.tflite").write_bytes(Path(digits).read_bytes())
    assert explored_graphs("model.tflite", ())
