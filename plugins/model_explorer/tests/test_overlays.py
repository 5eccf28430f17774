"""Node data: a value for each node that has one, words in colours, and files that Model Explorer opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oplet_model_explorer import node_data, save_node_data


def node(id: str, **told: str) -> dict[str, Any]:
    return {"id": id, "attrs": [{"key": key.replace("_", " "), "value": value} for key, value in told.items()]}


GRAPHS = [
    {
        "id": "0 main",
        "nodes": [
            {"id": "inputs"},
            node("n0", node="0", served_by="oplet-builtin-ops 0.1", bytes_read="1,000", bytes_written="24", microseconds="1,234.5", share_of_the_time="99.5%"),
            node("n1", node="1", served_by="example, partition 0", without_delegates="oplet-compiled-ops 0.1", bytes_read="8"),
            node("n2", node="2", served_by="nobody", bytes_read="0", bytes_written="0"),
        ],
    },
    {"id": "1", "nodes": []},
]  # fmt: skip


def test_each_kind_has_the_values_of_nodes_and_only_of_nodes() -> None:
    found = node_data(GRAPHS)
    values = {kind: {id: told["value"] for id, told in data["0 main"]["results"].items()} for kind, data in found.items()}
    assert values == {
        "time, us": {"n0": 1234.5},
        "share of the time, %": {"n0": 99.5},
        "package": {"n0": "oplet-builtin-ops", "n1": "oplet-compiled-ops", "n2": "nobody"},
        "delegate": {"n0": "none", "n1": "example, partition 0", "n2": "none"},
        "bytes moved": {"n0": 1024, "n1": 8, "n2": 0},
    }
    assert all(data["1"]["results"] == {} for data in found.values())


def test_numbers_have_a_gradient_and_every_word_a_colour_of_its_own() -> None:
    found = node_data(GRAPHS)
    assert [stop["stop"] for stop in found["time, us"]["0 main"]["gradient"]] == [0, 0.3, 1]
    colours = {told["value"]: told["bgColor"] for told in found["package"]["0 main"]["results"].values()}
    assert len(set(colours.values())) == 3
    assert "gradient" not in found["package"]["0 main"]


def test_without_times_there_is_no_data_of_times() -> None:
    assert node_data([{"id": "0", "nodes": [GRAPHS[0]["nodes"][2]]}]).keys() == {"package", "delegate", "bytes moved"}


def test_the_shares_of_a_real_model_add_up_to_the_whole(timed: list[dict[str, Any]]) -> None:
    found = node_data(timed)
    [shares] = found["share of the time, %"].values()
    assert sum(told["value"] for told in shares["results"].values()) == pytest.approx(100, abs=1)
    [times] = found["time, us"].values()
    assert all(told["value"] > 0 for told in times["results"].values())
    assert times["results"].keys() <= {node["id"] for node in timed[0]["nodes"]}


def test_each_kind_is_saved_as_a_file_of_its_own(tmp_path: Path) -> None:
    written = save_node_data(GRAPHS, tmp_path)
    assert [path.name for path in written] == [
        "time.json",
        "share-of-the-time.json",
        "package.json",
        "delegate.json",
        "bytes-moved.json",
    ]
    assert [json.loads(path.read_text()) for path in written] == list(node_data(GRAPHS).values())
