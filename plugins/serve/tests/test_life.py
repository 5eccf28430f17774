"""The life of a server: folders that cannot be served, ports that are taken, signals while requests run, MLServer's own command."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from plugins.serve.tests.models import mirror
from plugins.serve.tests.serving import DIGITS, Server, free_ports, message, served
from tests.children import LONG, run_child
from typer.testing import CliRunner

from oplet import ModelBuilder
from oplet.errors import ModelError, SignatureError
from oplet.schema.options import BatchMatMulOptions, GatherOptions
from oplet_serve.command import serve
from oplet_serve.repository import find_models
from oplet_testing import Graph, Op, Spec, graph_model


@pytest.mark.environment
def test_a_signal_lets_requests_end_and_then_the_server(tmp_path: Path) -> None:
    x = np.zeros((1, 512, 512), np.float32)
    nodes = [Op("BATCH_MATMUL", f"{i} {i}", f"{i + 1}", BatchMatMulOptions()) for i in range(100)]  # a second's work
    graph = Graph({str(i): Spec(np.float32, x.shape) for i in range(101)}, "0", "100", nodes)
    (tmp_path / "slow.tflite").write_bytes(graph_model(graph))
    answers: dict[str, Any] = {}
    with served(tmp_path) as server:

        def rest() -> None:
            text = json.dumps(
                {
                    "inputs": [
                        {
                            "name": "0",
                            "datatype": "FP32",
                            "shape": x.shape,
                            "parameters": {"binary_data_size": x.nbytes},
                        }
                    ],
                    "parameters": {"binary_data_output": True},
                }
            ).encode()
            headers = {"Inference-Header-Content-Length": str(len(text))}
            answers["rest"] = server.ask("POST", "/v2/models/slow/infer", text + x.tobytes(), headers)

        def rpc() -> None:
            answers["rpc"] = server.call("ModelInfer", message("slow", "0", "FP32", x))

        threads = [threading.Thread(target=work) for work in (rest, rpc)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + LONG
        while b'in_queue{model="slow"} 2.0' not in server.ask("GET", "/metrics", port=server.metrics_port)[1]:
            assert not answers, "the requests never ran at the same time"
            assert time.monotonic() < end
        status, written = server.end()
        for thread in threads:
            thread.join()
    assert (status, "Traceback" in written) == (0, False), written
    assert answers["rest"][0] == 200
    assert list(answers["rpc"].outputs[0].shape) == [1, 512, 512]
    with pytest.raises(OSError, match="refused"):
        server.ask("GET", "/v2/health/live")


def run(*arguments: object) -> tuple[int, str]:
    start = [sys.executable, "-c", "from oplet_serve.command import main; main()"]
    done = run_child([*start, *arguments], code=None)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.environment
def test_a_model_that_cannot_be_opened_and_a_port_that_is_taken_end_it_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.tflite").write_bytes(b"no model")
    status, written = run(tmp_path)
    assert (status, written.count("\n")) == (1, 1), written
    assert written.startswith("oplet-serve: ")
    with served(DIGITS) as server:
        others = free_ports()
        for option, port in (("--http-port", server.http_port), ("--grpc-port", server.grpc_port)):
            ports = ["--http-port", others[0], "--grpc-port", others[1], "--metrics-port", others[2]]
            status, written = run(DIGITS, *ports, option, port)
            assert status == 1
            assert f"cannot listen on 127.0.0.1:{port}; is the port taken?" in written
            assert "Traceback" not in written
        assert server.end()[0] == 0


@pytest.mark.environment
def test_mlserver_s_own_command_serves_with_the_runtime(tmp_path: Path) -> None:
    shutil.copy(DIGITS / "digits_int8.tflite", tmp_path / "model.tflite")
    http_port, grpc_port, metrics_port = free_ports()
    (tmp_path / "settings.json").write_text(
        json.dumps(
            {
                "parallel_workers": 0,
                "host": "127.0.0.1",
                "http_port": http_port,
                "grpc_port": grpc_port,
                "metrics_port": metrics_port,
            }
        )
    )
    (tmp_path / "model-settings.json").write_text(
        json.dumps(
            {
                "name": "digits",
                "implementation": "oplet_serve.OpletRuntime",
                "max_batch_size": 8,
                "max_batch_time": 0.01,
                "parameters": {"uri": "./model.tflite", "extra": {"max_rows": 3}},
            }
        )
    )
    command = [sys.executable, "-c", "from mlserver.cli import main; main()", "start", str(tmp_path)]
    server = Server(command, http_port, grpc_port, metrics_port, tmp_path)
    try:
        image = {"name": "image", "datatype": "INT8", "shape": [1, 8, 8, 1], "data": [0] * 64}
        status, told = server.infer("digits", inputs=[image])
        assert (status, told["outputs"][0]["shape"]) == (200, [1, 10])
        status, told = server.infer("digits", inputs=[{**image, "shape": [1, 8, 8, 2]}])
        assert (status, "the shape is" in told["error"]) == (400, True)
        images = np.zeros((2, 8, 8, 1), np.int8)
        assert list(server.call("ModelInfer", message("digits", "image", "INT8", images)).outputs[0].shape) == [2, 10]
        assert server.ask("GET", "/v2/models/digits")[1]["inputs"][0]["shape"] == [-1, 8, 8, 1]
    finally:
        server.process.kill()
        server.process.communicate()
        server.channel.close()


@pytest.mark.environment
def test_clients_learn_a_model_s_name_and_its_path_is_logged_where_its_file_is_at_fault(tmp_path: Path) -> None:
    folder = tmp_path / "whose place"
    folder.mkdir()
    weights = np.zeros(4, np.float32)
    tensors = {"weights": weights, "x": Spec(np.int32, [1]), "y": Spec(np.float32, [1])}
    (folder / "looks.tflite").write_bytes(
        graph_model(Graph(tensors, "x", "y", [Op("GATHER", "weights x", "y", GatherOptions())]))
    )
    tensors = {"x": Spec(np.float32, [1]), "shape": Spec(np.int32, [1]), "y": Spec(np.float32, [-1])}
    (folder / "grows.tflite").write_bytes(graph_model(Graph(tensors, "x shape", "y", [Op("BROADCAST_TO", "x shape", "y")])))
    (folder / "cut.tflite").write_bytes(mirror(np.float32, [1]))
    number, x = np.array([1 << 30], np.int32), np.zeros(1, np.float32)
    with served(folder / ".." / folder.name) as server:
        asked = {
            "looks": [("x", "INT32", number)],
            "grows": [("x", "FP32", x), ("shape", "INT32", number)],
            "cut": [("x", "FP32", x)],
        }
        os.truncate(folder / "cut.tflite", 100)
        told = {}
        for name, inputs in asked.items():
            request = [{"name": key, "datatype": kind, "shape": [1], "data": value.tolist()} for key, kind, value in inputs]
            status, answer = server.infer(name, inputs=request)
            told[name] = status, answer["error"]
            calls = message(name, *inputs[0])
            for key, kind, value in inputs[1:]:
                calls.inputs.add(name=key, datatype=kind, shape=[1])
                calls.raw_input_contents.append(value.tobytes())
            assert server.call("ModelInfer", calls).details()[:200] in answer["error"]
        _, written = server.end()
    assert {name: status for name, (status, _) in told.items()} == {"looks": 400, "grows": 413, "cut": 500}
    assert all(name in text and "whose place" not in text for name, (_, text) in told.items())
    assert f"'{folder / 'cut.tflite'}' changed while it was in use" in written
    assert "looks.tflite" not in written


def test_a_model_of_more_signatures_than_are_served_is_refused_unless_one_is_chosen(tmp_path: Path) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, np.float32, [1]) for name in "xy")
    graph.add_operator("FLOOR", [x], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    for number in range(65):
        builder.add_signature(f"s{number}", {"x": x}, {"y": y}, graph)
    path = tmp_path / "many.tflite"
    path.write_bytes(builder.to_bytes())
    with pytest.raises(ModelError, match="has 65 signatures, of which 64 can be served; take one with --signature"):
        find_models([path])
    assert [model.signature for model in find_models([path], "s64")] == ["s64"]


#: What delegates, states and signatures can have wrong, and what is said of it.
MISTAKES = {
    "--delegate nope": "no installed package brings a delegate of that name",
    "--state a=b": "No model has the input 'a' and the output 'b'",
    "--state image=": "No model has the input 'image' and the output ''",
    "--state image=probabilities": "no next value of the input",
    "--signature nope": "Invalid signature_key",
}
#: A program that makes all these mistakes, one after the other.
MISTAKEN = f"""
import sys
from oplet_serve.command import main
for options in {list(MISTAKES)}:
    sys.argv = ["oplet-serve", {str(DIGITS / "digits_float32.tflite")!r}, *options.split()]
    try:
        main()
    except SystemExit as ended:
        print(ended, "mlserver" in sys.modules)
"""


def test_what_is_wrong_with_a_delegate_or_a_state_is_told_before_mlserver_is_imported() -> None:
    told = run_child([sys.executable, "-c", MISTAKEN]).stdout.splitlines()
    assert len(told) == len(MISTAKES)
    for line, (options, reason) in zip(told, MISTAKES.items()):
        assert reason in line, options
        assert line.endswith(" False"), options


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ("max-seconds idle-seconds sequence-seconds grace max-batch-time", ("nan", "inf", "1e308", "-1", "x")),
        ("workers num-threads max-queue max-rows max-batch-size max-connections max-sequences", ("0", "-1", str(10**20), "1.5")),
        ("max-request-bytes max-bodies-bytes max-tensor-bytes max-arena-bytes max-sequence-bytes", ("0", str(10**24))),
        ("http-port grpc-port metrics-port", ("0", "65536")),
    ],
)
def test_numbers_that_no_server_can_keep_are_refused(names: str, values: tuple[str, ...]) -> None:
    app = typer.Typer()
    app.command()(serve)
    for name in names.split():
        for value in values:
            done = CliRunner().invoke(app, ["model.tflite", f"--{name}", value])
            assert done.exit_code == 2, (name, value, done.output)
            assert f"--{name}" in done.output


def test_names_and_versions_come_from_folders(tmp_path: Path) -> None:
    (tmp_path / "a.tflite").write_bytes(mirror(np.float32, [1]))
    for version in ("2", "10"):
        (tmp_path / "b" / version).mkdir(parents=True)
        shutil.copy(tmp_path / "a.tflite", tmp_path / "b" / version / "x.tflite")
    found = [(model.name, model.version) for model in find_models([tmp_path])]
    assert found == [("a", None), ("b", "2"), ("b", "10")]
    shutil.copy(tmp_path / "a.tflite", tmp_path / "b.tflite")
    with pytest.raises(ModelError, match="'b' is there with versions and without"):
        find_models([tmp_path])
    (tmp_path / "other").mkdir()
    for name in ("a\nb", "a\udcff"):
        shutil.copy(tmp_path / "a.tflite", tmp_path / "other" / f"{name}.tflite")
        with pytest.raises(ModelError, match="cannot be printed; rename it"):
            find_models([tmp_path / "other"])
        (tmp_path / "other" / f"{name}.tflite").unlink()
    with pytest.raises(ModelError, match="no .tflite file"):
        find_models([tmp_path / "other"])
    shutil.copy(tmp_path / "a.tflite", tmp_path / "other")
    with pytest.raises(ModelError, match="rename one"):
        find_models([tmp_path / "a.tflite", tmp_path / "other"])
    with pytest.raises(ModelError, match="There is no file"):
        find_models([tmp_path / "none"])
    with pytest.raises(SignatureError, match='"nope"'):
        find_models([tmp_path / "a.tflite"], "nope")


def test_arguments_are_refused_before_the_server_s_engine_is_imported(tmp_path: Path) -> None:
    program = f"""
import sys
from oplet_serve.command import main
sys.argv = ["oplet-serve", {str(tmp_path / "none")!r}]
try:
    main()
finally:
    print("mlserver" in sys.modules)
"""
    ended = run_child([sys.executable, "-c", program], code=1)
    assert ended.stdout.split() == ["False"]
    assert ended.stderr.startswith("oplet-serve: There is no file or folder")
