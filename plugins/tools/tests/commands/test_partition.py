"""`oplet partition`: what delegates would take, without running the model."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from flatbuffers import flexbuffers
from tests.children import run_child

from oplet import Delegate, DelegateFlags, DelegateKernel, ModelBuilder, SimpleDelegate, TensorType, kernel_registration
from oplet.plugins.manager import PluginManager
from oplet.schema.options import Conv2DOptions, ReducerOptions, WhileOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing import Graph, Op, Spec, WrappingDelegate, graph_model
from oplet_tools.cli.settings import Settings
from oplet_tools.partitioning import layout
from oplet_tools.partitioning.drawing import draw_partitioning
from oplet_tools.partitioning.layout import lay_out
from oplet_tools.partitioning.partition import partition_model

IMAGE = [1, 8, 8, 3]
SVG = "{http://www.w3.org/2000/svg}"


def convolution(graph, source, name):
    weights = graph.add_tensor(f"{name}/w", "float32", [3, 3, 3, 3], data=np.ones((3, 3, 3, 3), np.float32))
    bias = graph.add_tensor(f"{name}/b", "float32", [3], data=np.zeros(3, np.float32))
    output = graph.add_tensor(name, "float32", IMAGE)
    graph.add_operator("CONV_2D", [source, weights, bias], [output], Conv2DOptions(stride_w=1, stride_h=1))
    return output


def conv_relu_mean(path, name="y"):
    """conv -> conv, relu -> add -> mean."""
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    image = graph.add_tensor("image", "float32", IMAGE)
    first = convolution(graph, image, "a")
    second = convolution(graph, first, "b")
    relu, total = (graph.add_tensor(name, "float32", IMAGE) for name in ("r", "s"))
    graph.add_operator("RELU", [first], [relu])
    graph.add_operator("ADD", [second, relu], [total])
    axes = graph.add_tensor("axes", "int32", [2], data=np.array([1, 2], np.int32))
    mean = graph.add_tensor(name, "float32", [1, 3])
    graph.add_operator("MEAN", [total, axes], [mean], ReducerOptions())
    graph.set_inputs(image)
    graph.set_outputs(mean)
    path.write_bytes(builder.to_bytes())
    return path


@pytest.fixture
def model(tmp_path):
    return conv_relu_mean(tmp_path / "model.tflite")


@pytest.fixture
def loop(tmp_path):
    """while x < 10: x = x + x, with a mean behind it."""
    builder = ModelBuilder()
    main, condition, body = (builder.add_subgraph(name) for name in ("main", "condition", "body"))
    x, y, z = (main.add_tensor(name, "float32", [1]) for name in "xyz")
    main.add_operator("WHILE", [x], [y], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    axis = main.add_tensor("axis", "int32", [1], data=np.array([0], np.int32))
    main.add_operator("MEAN", [y, axis], [z], ReducerOptions(keep_dims=True))
    main.set_inputs(x)
    main.set_outputs(z)
    c = condition.add_tensor("c", "float32", [1])
    limit = condition.add_tensor("limit", "float32", [], data=np.array(10, np.float32))
    less = condition.add_tensor("less", "bool", [1])
    condition.add_operator("LESS", [c, limit], [less])
    condition.set_inputs(c)
    condition.set_outputs(less)
    b, twice, out = (body.add_tensor(name, "float32", [1]) for name in ("b", "twice", "out"))
    body.add_operator("ADD", [b, b], [twice])
    places = body.add_tensor("axis", "int32", [1], data=np.array([0], np.int32))
    body.add_operator("MEAN", [twice, places], [out], ReducerOptions(keep_dims=True))
    body.set_inputs(b)
    body.set_outputs(out)
    path = tmp_path / "loop.tflite"
    path.write_bytes(builder.to_bytes())
    return path


class NeverRun(DelegateKernel):
    def prepare(self, context, node):
        for tensor in node.outputs:
            context.resize_tensor(tensor, tensor.shape)

    def invoke(self, context, node):
        raise AssertionError("it was run")


class Taker(SimpleDelegate):
    """Takes the ops of its option `ops`; no claim has a reason."""

    name = "Taker"

    def is_node_supported(self, context, node):
        return node.op_name in self.options["ops"].split(",")

    def create_kernel(self, params):
        return NeverRun()


class Remarking(Delegate):
    """Takes the first node, and says where."""

    name = "Remarking"

    def prepare(self, context):
        registration = kernel_registration(self.name, lambda params: NeverRun())
        told = registration.__replace__(remark=lambda node, default_delegates: "on device 1\x1b[2J")
        context.replace_node_subsets_with_delegate_kernels(told, context.execution_plan[:1])


class Failing(SimpleDelegate):
    name = "Failing"

    def initialize(self, context):
        raise RuntimeError("the device is\nnot there")


@pytest.fixture
def takers(monkeypatch):
    """The delegates of this file, installed."""

    def plugins(settings):
        manager = PluginManager(block=settings.blocked)
        manager.registry().add("taker", Taker)
        manager.registry().add("failing", Failing)
        manager.registry().add("remarking", Remarking)
        return manager

    monkeypatch.setattr(Settings, "plugins", plugins)


def described(oplet, model, *delegates, code=0):
    options = [word for delegate in delegates for word in ("--delegate", delegate)]
    ran = oplet("partition", model, "--json", *options)
    assert ran.code == code, ran.err
    return json.loads(ran.out)


def test_it_says_which_nodes_go_which_stay_and_why_and_what_crosses_the_borders(oplet, model):
    ran = oplet("partition", model, "--delegate", "example")
    assert ran.code == 0, ran.err
    assert "example takes 3 nodes of 5, in 2 partitions." in ran.out
    lines = [re.split(r" {2,}", line.strip()) for line in ran.out.splitlines()]
    assert ["1", "CONV_2D", "1", "example, partition 0"] in lines
    assert ["2", "RELU", "1", "stays", "example: RELU is none of its operators"] in lines
    assert ["0", "example", "0", "2", "2 CONV_2D", "768", "1,536", "672"] in lines
    assert ["together", "3", "1,536", "1,548", "680"] in lines


def test_json_says_the_same(oplet, model):
    result = described(oplet, model, "example")
    assert result["delegates"] == ["example"]
    assert result["error"] == ""
    [subgraph] = result["subgraphs"]
    assert [node["partition"] for node in subgraph["nodes"]] == [0, 0, None, None, 1]
    assert subgraph["nodes"][3]["why"] == {"example": "ADD is none of its operators"}
    assert [partition["nodes"] for partition in subgraph["partitions"]] == [[0, 1], [4]]
    assert subgraph["plan"] == [5, 2, 3, 6]
    first = subgraph["partitions"][0]
    names = {tensor["index"]: tensor["name"] for tensor in subgraph["tensors"]}
    assert [names[tensor] for tensor in first["inputs"]["tensors"]] == ["image"]
    assert [names[tensor] for tensor in first["outputs"]["tensors"]] == ["a", "b"]
    assert [names[tensor] for tensor in first["constants"]["tensors"]] == ["a/w", "a/b", "b/w", "b/b"]
    assert result["totals"] == {
        "nodes": 5, "claimed": 3, "partitions": 2, "bytes_in": 1536, "bytes_out": 1548, "bytes_of_constants": 680,
        "tensors_of_unknown_size": 0,
    }  # fmt: skip


def test_the_delegate_s_options_count(oplet, model):
    result = described(oplet, model, "example:min_nodes=2")
    assert [partition["nodes"] for partition in result["subgraphs"][0]["partitions"]] == [[0, 1]]
    assert "min_nodes_per_partition=2" in result["subgraphs"][0]["nodes"][4]["why"]["example"]


@pytest.mark.usefixtures("takers")
def test_what_a_delegate_says_of_a_partition_is_shown(oplet, model):
    ran = oplet("partition", model, "--delegate", "remarking")
    assert "\npartition 0, remarking: on device 1\\x1b[2J\n" in ran.out
    assert described(oplet, model, "remarking")["subgraphs"][0]["partitions"][0]["remark"] == "on device 1\x1b[2J"


@pytest.mark.usefixtures("takers")
def test_several_delegates_are_asked_in_turn_and_nothing_is_run(oplet, model):
    result = described(oplet, model, "taker:ops='RELU,ADD'", "example", "taker:ops=MEAN")
    assert result["delegates"] == ["taker", "example", "taker (2)"]
    [subgraph] = result["subgraphs"]
    owners = {partition["index"]: partition["delegate"] for partition in subgraph["partitions"]}
    assert [owners[node["partition"]] for node in subgraph["nodes"]] == ["example"] * 2 + ["taker"] * 2 + ["example"]
    alone = described(oplet, model, "taker:ops=ADD")
    assert alone["subgraphs"][0]["nodes"][0]["why"] == {"taker": "not supported"}


@pytest.mark.usefixtures("takers")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_delegate_that_fails_is_named_with_its_reason_and_the_graph_is_shown_as_it_stays(oplet, model, tmp_path, options):
    svg = tmp_path / "out.svg"
    ran = oplet("partition", model, "--delegate", "example", "--delegate", "failing", "--svg", svg, *options)
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "failing failed on subgraph 0 'main': the device is not there" in ran.err
    if options:
        result = json.loads(ran.out)
        assert "the device is" in result["error"]
        assert result["totals"]["claimed"] == 0
    else:
        assert "as it stays" in ran.out
        assert "take 0 nodes of 5, so everything stays" in ran.out
    assert "the device is not there" in "".join(ET.parse(svg).getroot().itertext())


def test_a_delegate_that_does_not_suit_leaves_those_before_it_in_force(model):
    class Whole(Taker):
        name = "Whole"
        flags = DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE

    result = partition_model(model, [Taker({"ops": "ADD"}), Whole({"ops": "RELU"}), Taker({"ops": "MEAN"})])
    assert "Whole leaves nodes" in result.error
    assert [(partition.delegate, partition.nodes) for partition in result.partitions] == [("Taker", [3])]
    [subgraph] = result.subgraphs
    assert list(subgraph.errors) == ["Whole"]
    assert subgraph.nodes[0].why == {"Taker": "not supported"}


def test_a_kernel_that_replaces_kernels_counts_the_model_s_nodes(model):
    class Whole(Taker):
        name = "Whole"

        def prepare(self, context):
            registration = kernel_registration(self.name, self.create_kernel)
            context.replace_node_subsets_with_delegate_kernels(registration, context.execution_plan)

    result = partition_model(model, [Taker({"ops": "ADD,RELU"}), Whole({"ops": ""})])
    assert result.error == ""
    assert [(p.delegate, sorted(p.nodes)) for p in result.partitions] == [("Whole", [0, 1, 2, 3, 4])]


def test_every_subgraph_is_cut(oplet, loop):
    result = described(oplet, loop, "example")
    assert [subgraph["name"] for subgraph in result["subgraphs"]] == ["main", "condition", "body"]
    assert [[p["index"] for p in subgraph["partitions"]] for subgraph in result["subgraphs"]] == [[0], [], [1]]
    ran = oplet("partition", loop, "--delegate", "example")
    assert "takes 2 nodes of 5 of 3 subgraphs, in 2 partitions" in ran.out


def test_sizes_that_nobody_knows_are_counted_apart(tmp_path):
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, TensorType.STRING, [2]) for name in "xy")
    shape = graph.add_tensor("shape", "int32", [1], data=np.array([2], np.int32))
    graph.add_operator("RESHAPE", [x, shape], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    (tmp_path / "strings.tflite").write_bytes(builder.to_bytes())
    result = partition_model(tmp_path / "strings.tflite", [Taker({"ops": "RESHAPE"})])
    assert (result.partitions[0].inputs.bytes, result.partitions[0].inputs.unknown) == (0, 1)
    assert result.totals[1].unknown == 1


def graph_groups(svg):
    root = ET.fromstring(svg)
    return root, [group for group in root.iter(f"{SVG}g") if "transform" in group.attrib]


def test_the_drawing_shows_the_graph_before_and_after(oplet, model, tmp_path):
    file = tmp_path / "out.svg"
    assert f"written to {file}" in oplet("partition", model, "--delegate", "example", "--svg", file).out
    root, (before, after) = graph_groups(file.read_bytes())
    texts = [["".join(text.itertext()) for text in graph.iter(f"{SVG}text")] for graph in (before, after)]
    assert [text for text in texts[0] if "#" in text] == ["CONV_2D #0", "CONV_2D #1", "RELU #2", "ADD #3", "MEAN #4"]
    assert [t for t in texts[1] if "#" in t] == [
        "example #5", "CONV_2D #0", "CONV_2D #1", "RELU #2", "ADD #3", "example #6", "MEAN #4",
    ]  # fmt: skip
    fills = [rect.get("style") for rect in before.iter(f"{SVG}rect")]
    assert fills[1] == fills[2] != fills[5]
    assert fills[3] is None
    tips = [title.text for title in after.iter(f"{SVG}title")]
    assert "tensor 0 'image': float32 [1, 8, 8, 3], 768 bytes" in tips
    width, height = (float(root.get(side)) for side in ("width", "height"))
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert width > 600
    assert height > 500


def test_names_from_the_file_cannot_break_the_drawing(tmp_path):
    name = "</title><script>x</script>&\"'\x1b\u202e"
    model = conv_relu_mean(tmp_path / "a.tflite", name)
    svg = draw_partitioning(partition_model(model, [Taker({"ops": name})]))
    root = ET.fromstring(svg)
    assert not list(root.iter(f"{SVG}script"))
    assert b"\x1b" not in svg
    assert "\u202e" not in svg.decode()


def test_the_same_model_gives_the_same_bytes_in_every_process(model, tmp_path):
    drawings = set()
    for seed in ("1", "2", "3"):
        code = "import sys; from oplet_tools.cli.main import main; main(sys.argv[1:])"
        command = [sys.executable, "-c", code, "partition", model, "--delegate", "example", "--svg", tmp_path / "out.svg"]
        run_child(command, env={**os.environ, "PYTHONHASHSEED": seed}, text=False)
        drawings.add((tmp_path / "out.svg").read_bytes())
    assert len(drawings) == 1


def test_without_the_package_that_lays_out_the_command_to_install_it_is_named(oplet, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "graphlay", None)
    ran = oplet("partition", model, "--delegate", "example", "--svg", "out.svg")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == 'oplet: Drawing a graph needs graphlay; install it: pip install "oplet-tools[graph]".\n'
    assert oplet("partition", model, "--delegate", "example").code == 0


def test_boxes_do_not_overlap_and_edges_lead_downwards():
    random = np.random.default_rng(0)
    sizes = [(float(random.integers(60, 250)), float(random.integers(20, 200))) for _ in range(120)]
    edges = [(int(random.integers(max(0, i - 12), i)), i) for i in range(1, 110) for _ in range(2)]
    places = lay_out(sizes, edges)
    for one, ((x, y), (w, h)) in enumerate(zip(places.boxes, sizes)):
        assert w / 2 - 1 <= x <= places.width - w / 2 + 1
        assert h / 2 - 1 <= y <= places.height - h / 2 + 1
        for (other_x, other_y), (other_w, other_h) in list(zip(places.boxes, sizes))[:one]:
            assert abs(x - other_x) >= (w + other_w) / 2 or abs(y - other_y) >= (h + other_h) / 2
    for source, target in edges:
        assert places.boxes[source][1] < places.boxes[target][1]


def test_edges_lead_from_box_to_box_and_pass_beside_the_others():
    random = np.random.default_rng(1)
    sizes = [(float(random.integers(60, 250)), float(random.integers(20, 90))) for _ in range(60)]
    edges = {(int(random.integers(max(0, i - 9), i)), i) for i in range(1, 60)}
    places = lay_out(sizes, edges)
    assert set(places.edges) == edges
    inside = 0
    for (source, target), line in places.edges.items():
        for box, (x, y), side in ((source, line[0], 1), (target, line[-1], -1)):
            (middle, centre), (width, height) = places.boxes[box], sizes[box]
            assert abs(x - middle) <= width / 2 + 1e-6
            assert y == pytest.approx(centre + side * height / 2)
        assert all(above[1] <= below[1] for above, below in itertools.pairwise(line))
        points = [p + (q - p) * t for p, q in itertools.pairwise(np.array(line)) for t in np.linspace(0, 1, 20)]
        others = [box for box in range(60) if box not in (source, target)]
        middles, halves = np.array(places.boxes)[others], np.array(sizes)[others] / 2 - 1
        inside += any((abs(middles - point) < halves).all(1).any() for point in points)
    assert inside <= 1  # of 59: the package promises few, not none


def test_a_graph_that_the_package_refuses_is_told_with_its_reason(monkeypatch):
    monkeypatch.setitem(layout._OPTIONS, "limits", {"max_nodes": 1})
    with pytest.raises(layout.LayoutError, match="does not lay this graph of 2 boxes and 1 edges out"):
        lay_out([(10.0, 10.0)] * 2, [(0, 1)])


def test_the_nodes_of_composites_stand_in_their_place(tmp_path):
    vector = Spec("float32", [2])
    data = np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8)
    options = StableHLOCompositeOptions(name="my.layer", decomposition_subgraph_index=1, composite_attributes=data)
    tensors = dict.fromkeys("abcy", vector)
    main = Graph(tensors, "a", "y", [Op("TANH", "a", "b"), Op("STABLEHLO_COMPOSITE", "b", "c", options), Op("TANH", "c", "y")])
    inner = Graph(dict.fromkeys("aby", vector), "a", "y", [Op("EXP", "a", "b"), Op("NEG", "b", "y")])
    path = tmp_path / "composite.tflite"
    path.write_bytes(graph_model(main, inner))
    result = partition_model(path, [WrappingDelegate(lambda context, node: node.op_name != "STABLEHLO_COMPOSITE")])
    [caller, decomposition] = result.subgraphs
    assert [(node.op, node.partition is not None) for node in caller.nodes] == [
        (op, True) for op in ("TANH", "EXP", "NEG", "TANH")
    ]
    assert len(result.partitions) == 1
    assert decomposition.skipped == "kernels compute its composites, or its nodes run in their place"
