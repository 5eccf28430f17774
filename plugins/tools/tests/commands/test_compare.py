"""`oplet compare`: what a delegate changes in the numbers, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from plugins.tools.tests.comparing.spoiling import CHAIN, VECTOR

from oplet import Context, DelegateKernel, DelegateParams, Node, SimpleDelegate, TensorType
from oplet.schema.options import AddOptions, CallOnceOptions, VarHandleOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing import Graph, Op, Spec, graph_model
from oplet_tools.comparing.compare import compare_model
from oplet_tools.comparing.interpreters import InterpreterPair


class Shifted(SimpleDelegate):
    """Runs TANH and ADD, and puts something upon the result of one node. Options: node, by."""

    name = "shifted"

    def is_node_supported(self, context: Any, node: Node) -> bool | str:
        return node.op_name in ("TANH", "ADD") or "too hard"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Kernel(params, int(self.options.get("node", -1)), float(self.options.get("by", 0)))


class Kernel(DelegateKernel):
    def __init__(self, params: DelegateParams, node: int, by: float) -> None:
        [self.claimed] = params.nodes
        self.by = by if self.claimed.index == node else 0

    def prepare(self, context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], self.claimed.inputs[0].shape)

    def invoke(self, context: Context, node: Node) -> None:
        [out] = node.outputs
        arrays = [tensor.data for tensor in self.claimed.inputs]
        out.data[...] = (np.tanh(arrays[0]) if len(arrays) == 1 else arrays[0] + arrays[1]) + out.dtype.type(self.by)


class Refusing(SimpleDelegate):
    name = "refusing"

    def initialize(self, context: Any) -> None:
        raise RuntimeError("no such device")


@pytest.fixture
def compare(comparing: Any) -> Callable[..., Any]:
    return comparing(shifted=Shifted, refusing=Refusing)


def test_equal_answers_pass(compare):
    ran = compare(graph_model(CHAIN), "--delegate", "shifted")
    assert (ran.code, ran.err) == (0, "")
    assert "runs 3 of 5 nodes in 3 partitions" in ran.out
    assert "tolerance: by type, of a model with float weights" in ran.out
    assert "pass at the tolerances of their types" in ran.out
    assert "a random, seed 0 to 2" in ran.out


def test_a_difference_fails_unless_the_tolerance_allows_it(compare):
    wrong = [graph_model(CHAIN), "--delegate", "shifted:node=4,by=0.25"]
    ran = compare(*wrong)
    assert ran.code == 1
    assert "FAIL at the tolerances of their types: f" in ran.out
    assert compare(*wrong, "--atol", "0.3").code == 0
    assert "FAIL at rtol 0, atol 0.2: f" in compare(*wrong, "--atol", "0.2").out


def test_layers_show_where_it_begins(compare):
    ran = compare(graph_model(CHAIN), "--delegate", "shifted:node=2,by=0.25", "--layers", "--json")
    assert ran.code == 1
    result = json.loads(ran.out)
    assert result["partitions"] == [{"subgraph": 0, "nodes": [node]} for node in (0, 2, 4)]
    layers = {layer["name"]: layer for layer in result["layers"]}
    assert [name for name, layer in layers.items() if layer["passed"]] == ["a", "b", "c"]
    assert [name for name, layer in layers.items() if not layer["passed"]] == ["d", "e", "f"]
    assert (layers["d"]["written_by"], layers["d"]["read_by"]) == (1, [])
    assert (layers["e"]["written_by"], layers["e"]["read_by"]) == (-1, [2])
    assert layers["d"]["max_abs"] == pytest.approx(0.25)
    table = compare(graph_model(CHAIN), "--delegate", "shifted", "--layers").out
    assert "partitions: 0: nodes 0; 1: nodes 2; 2: nodes 4" in table


def test_inputs_come_from_files_too(compare, tmp_path):
    np.save(tmp_path / "a.npy", np.array([np.nan, np.inf, 1, 2], np.float32))
    ran = compare(graph_model(CHAIN), "--delegate", "shifted", "-i", tmp_path / "a.npy", "--runs", 1, "--json")
    assert ran.code == 0
    result = json.loads(ran.out)
    assert result["inputs"] == {"a": str(tmp_path / "a.npy")}
    [f] = result["outputs"]
    assert (f["values"], f["nonfinite"], f["nonfinite_differing"]) == (4, 1, 0)


def test_integers_are_counted_in_steps(compare):
    numbers = Spec("int32", [3])
    model = graph_model(Graph(dict.fromkeys("xyz", numbers), "x y", "z", [Op("ADD", "x y", "z", AddOptions())]))
    arguments = [model, "--delegate", "shifted:node=0,by=2", "--runs", 2]
    ran = compare(*arguments)
    assert ran.code == 1
    assert "2 steps" in ran.out
    assert "6 of 6" in ran.out
    assert compare(*arguments, "--atol", 2).code == 0


def test_a_delegate_that_claims_nothing_is_said_so(compare):
    ran = compare(graph_model(Graph({"a": VECTOR, "b": VECTOR}, "a", "b", [Op("RELU", "a", "b")])), "--delegate", "shifted")
    assert ran.code == 3
    assert "claims none of the model's nodes (1), nothing was delegated: the model was compared with itself" in ran.out


def test_variables_are_compared_over_successive_runs(compare):
    """sum += x: an error of one run is there twice after two."""
    tensors = {
        "handle": Spec(TensorType.RESOURCE, [1]),
        "zero": np.zeros(4, np.float32),
        "x": VECTOR,
        "old": VECTOR,
        "new": VECTOR,
    }
    handle = Op("VAR_HANDLE", "", "handle", VarHandleOptions(shared_name="sum"))
    call_once = Op("CALL_ONCE", "", "", CallOnceOptions(init_subgraph_index=1))
    add = Op("ADD", "x old", "new", AddOptions())
    ops = [call_once, handle, Op("READ_VARIABLE", "handle", "old"), add, Op("ASSIGN_VARIABLE", "handle new")]
    model = graph_model(Graph(tensors, "x", "new", ops), Graph(tensors, "", "", [handle, Op("ASSIGN_VARIABLE", "handle zero")]))
    worst = []
    for runs in (1, 2, 3):
        ran = compare(model, "--delegate", "shifted:node=3,by=1", "--runs", runs, "--json", "--layers")
        assert ran.code == 1, ran.err
        worst.append(json.loads(ran.out)["outputs"][0]["max_abs"])
    assert worst == pytest.approx([1, 2, 3])


def test_values_in_a_delegate_s_buffers_are_compared_and_stay_there(tmp_path):
    from_buffers = []

    class InBuffers(Shifted):
        def create_kernel(self, params: DelegateParams) -> DelegateKernel:
            return BufferKernel(params, -1, 0)

        def copy_from_buffer_handle(self, context: Any, handle: Any, tensor: Any) -> None:
            tensor.data[...] = handle

    class BufferKernel(Kernel):
        def invoke(self, context: Context, node: Node) -> None:
            [out] = node.outputs
            from_buffers.extend(tensor.name for tensor in node.inputs if tensor.data_is_stale)
            arrays = [tensor.buffer_handle if tensor.data_is_stale else tensor.data for tensor in self.claimed.inputs]
            out.buffer_handle, out.data_is_stale = np.tanh(arrays[0]) if len(arrays) == 1 else arrays[0] + arrays[1], True

    ops = [Op("TANH", "a", "b"), Op("RELU", "a", "c"), Op("ADD", "b c", "d", AddOptions())]
    (tmp_path / "model.tflite").write_bytes(graph_model(CHAIN._replace(ops=ops, outputs="d")))
    result = compare_model(InterpreterPair(tmp_path / "model.tflite", lambda: [InBuffers()], True), layers=True)
    assert result.passed
    assert [layer.name for layer in result.layers] == ["a", "b", "c", "d"]
    assert set(from_buffers) == {"b"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--tolerance", "much"], 2, "neither one of strict"),
        (["--tolerance", "strict", "--rtol", "1"], 2, "--tolerance"),
        (["--delegate", "shifted", "--with", "litert", "--bisect"], 2, "--bisect"),
        (["--with", "absent.npz", "--runs", "2"], 2, "--runs"),
        (["--with", "absent.npz"], 1, "absent.npz"),
        (["--with", "picture.png"], 1, "the kinds are .npy, .npz, .json"),
        (["--delegate", "shifted", "--rtol", "-1"], 2, "--rtol"),
        (["--delegate", "shifted", "--runs", "0"], 2, "--runs"),
        (["--delegate", "nobody"], 1, "no installed package brings"),
        (["--delegate", "refusing"], 1, "no such device"),
        (["--delegate", "shifted", "-i", "absent.npy"], 1, "absent.npy"),
    ],
)
def test_wrong_usage_and_failures(compare, arguments, code, said):
    ran = compare(graph_model(CHAIN), *arguments)
    assert ran.code == code
    assert said in ran.err


def with_composites() -> bytes:
    """A composite that nobody serves, in a composite that nobody serves, between other nodes."""
    data = np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8)
    outer, inner = (
        StableHLOCompositeOptions(name=f"my.{name}", decomposition_subgraph_index=index, composite_attributes=data)
        for name, index in (("outer", 1), ("inner", 2))
    )
    tensors = dict.fromkeys("abcy", VECTOR)
    main = Graph(tensors, "a", "y", [Op("TANH", "a", "b"), Op("STABLEHLO_COMPOSITE", "b", "c", outer), Op("TANH", "c", "y")])
    middle = Graph(tensors, "a", "y", [Op("COS", "a", "b"), Op("STABLEHLO_COMPOSITE", "b", "c", inner), Op("ABS", "c", "y")])
    last = Graph(dict.fromkeys("aby", VECTOR), "a", "y", [Op("TANH", "a", "b"), Op("NEG", "b", "y")])
    return graph_model(main, middle, last)


def test_borders_among_the_nodes_of_composites_are_compared(compare):
    ran = compare(with_composites(), "--delegate", "shifted", "--layers", "--bisect", "--json")
    result = json.loads(ran.out)
    assert (ran.code, len(result["partitions"]), len(result["layers"])) == (0, 3, 6)
    [shifted] = result["partitions"][1]["nodes"]
    ran = compare(with_composites(), "--delegate", f"shifted:node={shifted},by=0.25", "--layers", "--bisect", "--json")
    result = json.loads(ran.out)
    assert ran.code == 1
    assert [layer["passed"] for layer in result["layers"]] == [True, True, True, False, False, False]
    assert (result["bisection"]["first"]["node"], result["bisection"]["first"]["op"]) == (shifted, "TANH")
