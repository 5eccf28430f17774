"""Model Explorer itself, with the extensions: its server gives their graphs and node data by HTTP.

OPLET_PROGRAMS names the Python of an environment that `scripts/programs.sh` made.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PYTHON = os.environ.get("OPLET_PROGRAMS", "")

pytestmark = [
    pytest.mark.environment,
    pytest.mark.skipif(not PYTHON, reason="sh scripts/programs.sh FOLDER, then set OPLET_PROGRAMS"),
]

Send = Callable[..., Any]


@pytest.fixture(scope="module")
def send(digits: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Sends an extension of a running server a command, and returns its answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    log = tmp_path_factory.mktemp("server") / "log"
    options = ["--extensions=oplet_model_explorer", "--no_open_in_browser", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as told, subprocess.Popen(
        [Path(PYTHON).with_name("model-explorer"), digits, *options], stdout=told, stderr=subprocess.STDOUT
    ) as process:  # fmt: skip
        try:
            _wait_until_it_answers(f"{address}/check_health", process, log)

            def send(extension: str, command: str, **arguments: Any) -> Any:
                asked = {"cmdId": command, "extensionId": extension, "deleteAfterConversion": False, **arguments}
                request = urllib.request.Request(
                    f"{address}/apipost/v1/send_command", json.dumps(asked).encode(), {"Content-Type": "application/json"}
                )
                with urllib.request.urlopen(request, timeout=300) as answer:
                    return json.load(answer)

            yield send
        finally:
            process.terminate()


def _wait_until_it_answers(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(6000):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(address, timeout=300):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    pytest.fail(f"the server does not answer: {log.read_text()}")


def test_the_server_gives_the_graph_and_the_node_data_that_belongs_to_it(send: Send, digits: str) -> None:
    [graph] = send("oplet", "convert", modelPath=digits, settings={})["graphs"]
    assert {"GraphInputs", "CONV_2D", "SOFTMAX"} <= {node["label"] for node in graph["nodes"]}
    found = send("oplet_node_data", "run", modelPath=digits, graphId=graph["id"], configValues={}, graph=graph)
    assert not found["error"]
    assert "time, us" in {data["name"] for data in found["result"]}
    ids = {node["id"] for node in graph["nodes"]}
    assert all(set() < data["results"].keys() <= ids for data in found["result"])


def test_a_model_with_hostile_names_is_a_graph(send: Send, hostile: str) -> None:
    [graph] = send("oplet", "convert", modelPath=hostile, settings={})["graphs"]
    assert [node["label"] for node in graph["nodes"]].count("ABS") == 5


def test_the_viewer_gets_the_sentence_of_what_is_wrong(send: Send, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(b"no model at all")
    assert "damaged.tflite" in send("oplet", "convert", modelPath=str(damaged), settings={})["error"]
