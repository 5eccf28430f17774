"""`oplet compare`: where a difference begins, and what else a model is compared with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.tools.tests.comparing.spoiling import CHAIN, VECTOR, Spoiling

from oplet import ModelBuilder, Tensor
from oplet.schema.enums import Padding
from oplet.schema.options import AddOptions, ArgMaxOptions, Conv2DOptions, WhileOptions
from oplet_testing import Graph, Op, Spec, graph_model


@pytest.fixture
def compare(comparing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path / "cache"))
    return comparing(spoiling=Spoiling)


def written(folder: Path, model: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(model)
    return path


def described(ran: Any) -> Any:
    assert ran.err == ""
    return json.loads(ran.out)


def test_the_first_node_that_departs_is_named_also_within_a_partition(compare):
    model = graph_model(CHAIN)
    ran = compare(model, "--delegate", "spoiling:node=2,by=1.01", "--bisect")
    assert ran.code == 1
    assert "runs 5 of 5 nodes in 1 partition" in ran.out
    assert "first to depart: node 2 (TANH), tensor 'd'" in ran.out
    found = described(compare(model, "--delegate", "spoiling:node=2,by=1.01", "--bisect", "--json"))
    assert found["bisection"]["how"] == "alone"
    assert found["bisection"]["first"]["node"] == 2
    assert found["bisection"]["first"]["worst"]["units"] == pytest.approx(0.01, rel=1e-3)
    assert [step["node"] for step in found["bisection"]["growth"]] == [0, 1, 2, 3, 4]
    assert [bool(step["by_itself"]) for step in found["bisection"]["growth"]] == [False, False, True, False, False]
    assert [bool(step["with_all_before"]) for step in found["bisection"]["growth"]] == [False, False, True, True, True]


def test_a_node_that_departs_only_in_a_partition_with_others_is_named(compare):
    found = described(compare(graph_model(CHAIN), "--delegate", "spoiling:node=3,by=1.5,least=3", "--bisect", "--json"))
    assert (found["passed"], found["bisection"]["how"]) == (False, "together")
    assert found["bisection"]["first"]["node"] == 3


def test_differences_that_add_up_are_said_to(compare):
    """Each node is off by less than it may be, and the whole by more."""
    names = [f"t{i}" for i in range(9)]
    ops = [Op("RELU", names[i], names[i + 1]) for i in range(8)]
    model = graph_model(Graph(dict.fromkeys(names, VECTOR), names[0], names[-1], ops))
    ran = compare(model, "--delegate", "spoiling:by=1.0003", "--bisect")
    assert ran.code == 1
    assert "no node departs by itself" in ran.out
    assert "the differences add up" in ran.out
    assert "node 7 (RELU)" in ran.out


def test_a_node_of_a_loop_s_body_is_named_with_its_subgraph(compare):
    number = Spec("float32", [1])
    limit = np.array([10], np.float32)
    tensors = {"x": number, "y": number, "limit": limit, "less": Spec("bool", [1])}
    main = Graph(tensors, "x", "y", [Op("WHILE", "x", "y", WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))])
    condition = Graph(tensors, "x", "less", [Op("LESS", "x limit", "less")])
    one = np.array([1], np.float32)
    body = Graph({**tensors, "one": one}, "x", "y", [Op("ADD", "x one", "y", AddOptions())])
    found = described(
        compare(graph_model(main, condition, body), "--delegate", "spoiling:claims=ADD,by=1.2", "--bisect", "--json")
    )
    first = found["bisection"]["first"]
    assert (first["subgraph"], first["node"], first["op"]) == (2, 0, "ADD")


def test_an_index_that_is_chosen_otherwise_among_nearly_equal_values_passes_with_a_note(tmp_path):
    tensors = {"a": VECTOR, "b": VECTOR, "axis": np.array([0], np.int32), "i": Spec("int32", [1])}
    tensors["a"] = Spec("float32", [1, 4])
    tensors["b"] = Spec("float32", [1, 4])
    tensors["axis"] = np.array(1, np.int32)
    ops = [Op("TANH", "a", "b"), Op("ARG_MAX", "b axis", "i", ArgMaxOptions(output_type=2))]
    model = graph_model(Graph(tensors, "a", "b i", ops))

    class Tipping(Spoiling):
        def spoil(self, out: Tensor) -> None:
            out.data[0, 2] += np.float32(1e-5) * (1 if out.data[0, 2] > 0 else -1)

    from oplet_tools.comparing.compare import compare_model
    from oplet_tools.comparing.interpreters import InterpreterPair

    path = written(tmp_path, model)
    near = np.array([[0.5, 0.1, 0.5 - 1e-6, 0.2]], np.float32)
    np.save(path.parent / "a.npy", near)
    given = [str(path.parent / "a.npy")]
    tipped = compare_model(InterpreterPair(path, lambda: [Tipping({"op": "TANH"})], True), given)
    index = next(layer for layer in tipped.outputs if layer.name == "i")
    assert (index.difference.differing, index.difference.passed, tipped.passed) == (1, True, True)
    assert "another choice" in index.note
    np.save(path.parent / "a.npy", near[:, ::-1])
    wrong = compare_model(
        InterpreterPair(path, lambda: [Spoiling({"op": "ARG_MAX", "by": "0", "claims": "ARG_MAX"})], True), given
    )
    assert not wrong.passed, "the index itself is wrong on the same values"


def test_saved_outputs_are_what_it_is_compared_with(compare, oplet, tmp_path):
    model = graph_model(CHAIN)
    np.save(tmp_path / "a.npy", np.array([1, 2, 3, 4], np.float32))
    path = written(tmp_path, model)
    for name in ("out.npz", "out.npy", "out.json"):
        assert oplet("run", path, "-i", tmp_path / "a.npy", "--output", tmp_path / name).code == 0
        ran = compare(model, "-i", tmp_path / "a.npy", "--with", tmp_path / name)
        assert (ran.code, ran.err) == (0, "")
        assert f"compared with {tmp_path / name}" in ran.out
    wrong = np.load(tmp_path / "out.npy")
    wrong[1] += 0.01
    np.save(tmp_path / "wrong.npy", wrong)
    ran = compare(model, "-i", tmp_path / "a.npy", "--with", tmp_path / "wrong.npy", "--json")
    assert ran.code == 1
    [f] = json.loads(ran.out)["outputs"]
    assert f["worst"]["index"] == [1]
    np.savez(tmp_path / "other.npz", g=wrong, h=wrong)
    assert "has no output 'f'" in compare(model, "--with", tmp_path / "other.npz").err
    (tmp_path / "broken.npz").write_bytes(b"PK")
    assert compare(model, "--with", tmp_path / "broken.npz").code == 1


@pytest.mark.parametrize("way", ["litert", "litert-no-xnnpack", "litert-reference"])
def test_litert_is_what_it_is_compared_with(compare, way):
    pytest.importorskip("ai_edge_litert.interpreter")
    ran = compare(graph_model(CHAIN), "--with", way, "--bisect")
    assert (ran.code, ran.err) == (0, "")
    assert f"5 nodes run without a delegate, compared with {way}" in ran.out
    assert "no node departs (5 tensors compared on the same values)" in ran.out
    assert compare(graph_model(CHAIN), "--delegate", "spoiling:node=2,by=1.01", "--with", way).code == 1


def test_litert_that_ends_on_a_model_ends_nothing_else(compare, monkeypatch):
    pytest.importorskip("ai_edge_litert.interpreter")
    monkeypatch.setattr("oplet_tools.comparing.references._CHILD", "import os; os.abort()")
    ran = compare(graph_model(CHAIN), "--with", "litert")
    assert ran.code == 1
    assert "litert ends with signal 6 on this model." in ran.err


@pytest.mark.parametrize("kind", ["float", "hybrid", "int8"])
def test_a_convolution_that_is_off_by_one_in_a_hundred_fails_and_is_named(compare, kind):
    model = net_of_convolutions(kind)
    ran = compare(model, "--delegate", "spoiling", "--bisect", "--runs", 2)
    assert ran.code == 0, ran.out
    for claims in ("", "claims=CONV_2D,"):
        found = described(compare(model, "--delegate", f"spoiling:{claims}node=2,by=1.01", "--bisect", "--runs", 2, "--json"))
        assert not found["passed"]
        assert (found["bisection"]["how"], found["bisection"]["first"]["node"]) == ("alone", 2)


def net_of_convolutions(kind: str) -> bytes:
    """Four convolutions of 3 x 3, of floats, of floats with integer weights, or of integers."""
    random = np.random.default_rng(7)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    activations = {"scale": 0.05, "zero_point": 3} if kind == "int8" else {}
    type = "int8" if kind == "int8" else "float32"
    x = graph.add_tensor("x", type, [1, 16, 16, 8], **activations)
    graph.set_inputs(x)
    for number in range(4):
        real = random.normal(0, 0.12, (8, 3, 3, 8))
        data, scaled = real.astype(np.float32), {}
        if kind != "float":
            data, scaled = np.clip(np.rint(real / 0.004), -127, 127).astype(np.int8), {"scale": 0.004, "zero_point": 0}
        weights = graph.add_tensor(f"w{number}", data.dtype.name, data.shape, data=data, **scaled)
        bias_type = np.int32 if kind == "int8" else np.float32
        of_bias = {"scale": 0.05 * 0.004, "zero_point": 0} if kind == "int8" else {}
        bias = graph.add_tensor(f"b{number}", np.dtype(bias_type).name, [8], data=np.zeros(8, bias_type), **of_bias)
        y = graph.add_tensor(f"y{number}", type, [1, 16, 16, 8], **activations)
        graph.add_operator("CONV_2D", [x, weights, bias], [y], Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1))
        x = y
    graph.set_outputs(x)
    return builder.to_bytes()


def test_nothing_delegated_has_an_exit_code_of_its_own(compare):
    model = graph_model(CHAIN)
    ran = compare(model, "--delegate", "spoiling:claims=NOTHING", "--json")
    assert ran.code == 3
    found = json.loads(ran.out)
    assert (found["passed"], found["trivial"], found["delegated"]) == (True, True, True)
    ran = compare(model, "--delegate", "spoiling:claims=NOTHING", "--with", "litert")
    assert ran.code in (1, 3)


def test_without_a_delegate_other_packages_kernels_are_compared_with_the_built_in_ones(compare):
    ran = compare(graph_model(CHAIN), "--bisect")
    assert ran.code in (0, 3), ran.out
    assert ("Other kernels than the built-in ones run" in ran.out) == (ran.code == 0)


@pytest.mark.sweep
def test_auto_is_compared_and_cut_too(compare, oplet, tmp_path):
    model = graph_model(CHAIN)
    ran = compare(model, "--delegate", "auto:max_seconds=1", "--runs", 1)
    assert ran.code in (0, 3), ran.err
    assert "auto chose" in ran.out
    assert ran.code == 3 or "The delegate runs" in ran.out or "Other kernels" in ran.out
    cut = oplet("partition", written(tmp_path, model), "--delegate", "auto:max_seconds=1")
    assert (cut.code, cut.err) == (0, "")
    assert "auto chose" in cut.out
    both = compare(model, "--delegate", "auto", "--delegate", "spoiling")
    assert "so it stands alone" in both.err
