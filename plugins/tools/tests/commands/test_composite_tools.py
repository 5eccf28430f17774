"""What the commands say of composites, and what they select, lock and build for them."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from tests.children import run_child
from tests.places import ROOT

from oplet import Composite, Interpreter, Model, PluginManager, TensorType
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_build.building.build_wheel import build_wheel
from oplet_build.selection.check import check_installed, check_models
from oplet_build.selection.lock import Lock, lock_of
from oplet_build.selection.needs import needs_of
from oplet_build.selection.providers import find_providers
from oplet_build.selection.resolver_code import resolver_code
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

ATTENTION = "odml.scaled_dot_product_attention"
#: One key head: the decomposition in the file gives other values than the kernel.
RECORDED = ROOT / "tests" / "attention" / "attention_4_1_plain.npz"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    with np.load(RECORDED) as arrays:
        return dict(arrays)


@pytest.fixture
def attention(recorded: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "attention.tflite"
    path.write_bytes(recorded["model"].tobytes())
    return path


@pytest.fixture
def unserved(tmp_path: Path) -> Path:
    """A composite that nobody serves, besides its decomposition."""
    x = Spec("float32", [2])
    data = np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8)
    options = StableHLOCompositeOptions(name="my.unknown", version=3, decomposition_subgraph_index=1, composite_attributes=data)
    main = Graph({"a": x, "y": x}, "a", "y", [Op("STABLEHLO_COMPOSITE", "a", "y", options)])
    path = tmp_path / "unserved.tflite"
    path.write_bytes(graph_model(main, Graph({"a": x, "y": x}, "a", "y", [Op("EXP", "a", "y")])))
    return path


def error_of(interpreter: Interpreter, recorded: dict[str, Any]) -> float:
    arguments = {name: value for name, value in recorded.items() if name.startswith("args_")}
    (output,) = interpreter.get_signature_runner()(**arguments).values()
    return float(np.abs(output - recorded["output"]).max())


def test_the_example_tells_kernel_and_decomposition_apart(attention: Path, recorded: dict[str, Any]) -> None:
    assert error_of(Interpreter(str(attention)), recorded) < 1e-5


def test_inspect_lists_composites_with_who_serves_them(oplet: Any, attention: Path, unserved: Path) -> None:
    found = {op["op"]: op for op in json.loads(oplet("inspect", attention, "--json").out)["ops"]}
    op = found[ATTENTION]
    assert (op["version"], op["nodes"], op["custom"], op["composite"]) == (0, 1, False, True)
    assert (op["distribution"], op["why"]) == ("oplet-builtin-ops", "only provider")
    assert found["STABLEHLO_COMPOSITE"]["composite"] is False
    assert f"{ATTENTION} (composite)" in oplet("inspect", attention).out.replace("\n", "")
    (op,) = [op for op in json.loads(oplet("inspect", unserved, "--json").out)["ops"] if op["composite"]]
    assert (op["op"], op["version"], op["plugin"], op["advice"]) == ("my.unknown", 3, "", "")
    assert op["why"] == "nobody registered it; its decomposition runs"


def test_doctor_finds_a_model_healthy_whose_decomposition_runs(oplet: Any, attention: Path, unserved: Path) -> None:
    rows = {row["op"]: row for row in json.loads(oplet("doctor", attention, "--json").out)}
    assert rows[ATTENTION]["provider"].startswith("oplet-builtin-ops")
    assert rows[ATTENTION]["provided"] == "0"
    ran = oplet("doctor", unserved, "--json")
    rows = {row["op"]: row for row in json.loads(ran.out)}
    assert ran.code == 0
    assert rows["my.unknown"]["provider"].endswith("(its decomposition)")
    assert rows["my.unknown"]["composite"] is True
    ran = oplet("doctor", unserved, "--json", "-p", "no:oplet-builtin-ops", "-p", "no:oplet-compiled-ops")
    rows = {row["op"]: row for row in json.loads(ran.out)}
    assert ran.code == 1
    assert rows["my.unknown"]["provider"] == ""
    assert "No package that brings my.unknown is known" in rows["my.unknown"]["fix"]


def test_versions_names_the_composite(oplet: Any, attention: Path) -> None:
    ops = json.loads(oplet("versions", attention, "--json").out)["ops"]
    (op,) = [op for op in ops if op["op"] == "STABLEHLO_COMPOSITE"]
    assert op["why"] == f"the composite {ATTENTION} version 0; any runtime may run its decomposition"


def test_plugins_lists_the_composites_that_a_package_brings(oplet: Any) -> None:
    found = {plugin["distribution"]: plugin for plugin in json.loads(oplet("plugins", "--json").out)}
    ops = {op["op"]: op for op in found["oplet-builtin-ops"]["ops"]}
    assert (ops[ATTENTION]["min_version"], ops[ATTENTION]["max_version"]) == (0, 0)


def test_a_model_needs_its_composites_and_what_they_decompose_into(attention: Path, unserved: Path) -> None:
    needs = {need.op: need for need in needs_of([attention, unserved])}
    assert needs[Composite(ATTENTION)].versions == (0,)
    assert needs[Composite(ATTENTION)].types == (TensorType.FLOAT32,)
    assert needs[Composite("my.unknown")].versions == (3,)
    names = {need.name for need in needs.values()}
    assert names >= {"STABLEHLO_COMPOSITE", "BATCH_MATMUL", "SOFTMAX", "EXP"}
    served = {each.need.op for each in find_providers(needs.values(), PluginManager())}
    assert Composite(ATTENTION) in served
    assert Composite("my.unknown") not in served


def test_a_selected_resolver_serves_the_composite(attention: Path, recorded: dict[str, Any]) -> None:
    text = resolver_code(find_providers(needs_of([attention]), PluginManager()), types=True)
    assert f'resolver.add_composite(\n        "{ATTENTION}",' in text or f'resolver.add_composite("{ATTENTION}",' in text
    module: dict[str, Any] = {}
    exec(compile(text, "resolver", "exec"), module)
    assert module["resolver"]().versions(Composite(ATTENTION)) == [0]
    interpreter = Interpreter(str(attention), op_resolver=module["resolver"](), plugins=[])
    assert error_of(interpreter, recorded) < 1e-5


def test_a_lock_knows_composites(attention: Path, unserved: Path, tmp_path: Path, recorded: dict[str, Any]) -> None:
    manager = PluginManager()
    lock = lock_of(find_providers(needs_of([attention]), manager), [Model.open(attention)])
    path = tmp_path / "oplet.lock.json"
    path.write_text(lock.to_json())
    read = Lock.read(path)
    assert read == lock
    (op,) = [op for op in read.ops if op.composite]
    assert (op.name, op.versions, op.distribution, op.op) == (ATTENTION, (0,), "oplet-builtin-ops", Composite(ATTENTION))
    assert not check_models(read, [Model.open(attention)])
    assert not check_installed(read, manager)
    # Whoever made a lock without it would run the decomposition.
    without = Lock(read.oplet, read.api, read.models, tuple(op for op in read.ops if not op.composite), read.distributions)
    (problem,) = check_models(without, [Model.open(attention)])
    assert f"needs {ATTENTION} version 0, and the lock has no {ATTENTION}" in problem.text
    assert {problem.name for problem in check_models(read, [Model.open(unserved)])} == {"EXP"}


def test_a_wheel_brings_the_composites_kernel_and_the_decomposition(
    attention: Path, unserved: Path, recorded: dict[str, Any], tmp_path: Path
) -> None:
    built = build_wheel(
        [attention, unserved], "attention_ops", tmp_path, types=True, plugins=PluginManager(block=["oplet-compiled-ops"])
    )
    assert {(k.op, k.min_version) for k in built.cut.kernels if k.composite} == {(ATTENTION, 0)}
    assert {op["op"] for op in built.as_dict()["ops"]} >= {ATTENTION, "STABLEHLO_COMPOSITE", "SOFTMAX", "EXP"}
    with zipfile.ZipFile(built.path) as wheel:
        wheel.extractall(tmp_path / "site")
    np.savez(tmp_path / "arguments.npz", **{name: value for name, value in recorded.items() if name != "model"})
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path / "site")!r})
import numpy as np
from oplet import Interpreter, MutableOpResolver
import attention_ops
resolver = MutableOpResolver()
attention_ops.register_ops(resolver)
arguments = dict(np.load({str(tmp_path / "arguments.npz")!r}))
output = arguments.pop("output")
interpreter = Interpreter({str(attention)!r}, op_resolver=resolver, plugins=[])
(got,) = interpreter.get_signature_runner()(**arguments).values()
print(np.abs(got - output).max() < 1e-5, "oplet_builtin_ops" in sys.modules)
"""
    done = run_child([sys.executable, "-c", code])
    assert done.stdout.split() == ["True", "False"]


def test_an_archive_runs_the_composites_kernel(oplet: Any, attention: Path, recorded: dict[str, Any], tmp_path: Path) -> None:
    archive = tmp_path / "attention.pyz"
    ran = oplet(
        "build",
        attention,
        "--name",
        "attention_app",
        "--with-core",
        "--with-model",
        "-o",
        archive,
        "--no-timing",
        "--json",
        "-p",
        "no:oplet-compiled-ops",
    )
    assert ran.code == 0
    assert [op["op"] for op in json.loads(ran.out)["ops"] if op["composite"]] == [ATTENTION]
    inputs = []
    for name in ("args_0", "args_1", "args_2", "args_3"):
        np.save(tmp_path / f"{name}.npy", recorded[name])
        inputs += ["--input", f"{name}={tmp_path / name}.npy"]
    command = [sys.executable, str(archive), *inputs, "--output", str(tmp_path / "out.npz")]
    run_child(command)
    with np.load(tmp_path / "out.npz") as found:
        (output,) = found.values()
    np.testing.assert_allclose(output, recorded["output"], rtol=1e-5, atol=1e-5)
