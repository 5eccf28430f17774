"""Composites that nobody computes as a whole: their decompositions' nodes are inlined before delegates claim nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import Computes, answer, like_input
from flatbuffers import flexbuffers

from oplet import (
    Context,
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Interpreter,
    Limits,
    Model,
    MutableOpResolver,
    Node,
    Profiler,
    Registration,
    SimpleDelegate,
    decline,
)
from oplet.delegates.delegate import kernel_registration
from oplet.errors import InvokeError, LimitError
from oplet.model.control_dependencies import CONTROL_DEPENDENCIES
from oplet.schema.options import AddOptions, FullyConnectedOptions, IfOptions, MulOptions, RandomOptions, WhileOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.schema.tables import Metadata
from oplet_testing import WrappingDelegate
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec
from oplet_tools.rewriting.stripping import encode_control_dependencies

X = Spec("float32", [2], signature=[-1])
TWO = np.array(2, np.float32)
SQUARE = Graph({"a": X, "y": X}, "a", "y", [Op("MUL", "a a", "y", MulOptions())], name="square")
#: y = 2 a * a + 2, with a constant in it.
CURVE = Graph(
    {"a": X, "two": TWO, "b": X, "c": X, "y": X},
    "a",
    "y",
    [Op("MUL", "a a", "b", MulOptions()), Op("MUL", "b two", "c", MulOptions()), Op("ADD", "c two", "y", AddOptions())],
    name="curve",
)
A = np.array([3, -4], np.float32)


def composite(index: int = 1, reads: str = "a", writes: str = "y", name: str = "my.curve") -> Op:
    options = StableHLOCompositeOptions(
        name=name,
        decomposition_subgraph_index=index,
        composite_attributes=np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8),
    )
    return Op("STABLEHLO_COMPOSITE", reads, writes, options)


def around(*middle: Op, tensors: dict[str, Any] | None = None) -> Graph:
    """Nodes before and after composites: a, NEG -> b, composites -> c, NEG -> y."""
    ops = [Op("NEG", "a", "b"), *(middle or [composite(reads="b", writes="c")]), Op("NEG", "c", "y")]
    return Graph({"a": X, "b": X, "c": X, "y": X} | (tensors or {}), "a", "y", ops)


class NodeByNode(WrappingDelegate):
    """Claims every node but composites, and runs them with their own kernels."""

    def __init__(self, *, dynamic: bool = False) -> None:
        super().__init__(lambda context, node: node.op_name != "STABLEHLO_COMPOSITE", dynamic=dynamic)


def partitions(interpreter: Interpreter) -> list[int]:
    """The numbers of nodes of all partitions."""
    return [len(nodes) for report in interpreter.delegation_reports() for nodes in report.partitions]


def planned(interpreter: Interpreter, subgraph: int = 0) -> list[str]:
    return [report.op for report in interpreter.explain() if report.subgraph == subgraph]


def same_as_without(data: bytes, delegate: Delegate, *values: Any, **more: Any) -> Interpreter:
    """An interpreter with the delegate, whose answers are those without it, bit by bit."""
    plain = Interpreter(model_content=data, **more)
    delegated = Interpreter(model_content=data, experimental_delegates=[delegate], **more)
    for value in values or (A,):
        answer(plain, value)
        answer(delegated, value)
        for detail in plain.get_output_details():
            expected = plain.get_tensor(detail["index"])
            np.testing.assert_array_equal(delegated.get_tensor(detail["index"]), expected)
    return delegated


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_whose_every_op_is_supported_is_one_partition(dynamic: bool) -> None:
    interpreter = same_as_without(graph_model(around(), CURVE), NodeByNode(dynamic=dynamic), A, [1, 2, 3], A)
    assert partitions(interpreter) == [5]
    assert planned(interpreter) == ["Wrapping"]


def test_composites_in_composites_are_inlined() -> None:
    outer = Graph(
        {"a": X, "b": X, "y": X},
        "a",
        "y",
        [composite(2, "a", "b"), composite(2, "b", "y")],
    )
    interpreter = same_as_without(graph_model(around(), outer, CURVE), NodeByNode(), A, [1, 2, 3])
    assert partitions(interpreter) == [8]


def test_a_decomposition_that_is_used_for_several_shapes_is_inlined_in_each_place() -> None:
    longer = Spec("float32", [3])
    ops = [composite(reads="b", writes="c"), composite(reads="u", writes="v")]
    main = Graph(
        {"a": X, "b": X, "c": X, "y": X, "u": longer, "v": longer},
        "a u",
        "y v",
        [Op("NEG", "a", "b"), *ops, Op("NEG", "c", "y")],
    )
    data = graph_model(main, CURVE)
    plain, delegated = Interpreter(model_content=data), Interpreter(model_content=data, experimental_delegates=[NodeByNode()])
    for interpreter in (plain, delegated):
        interpreter.allocate_tensors()
        for detail, value in zip(interpreter.get_input_details(), (A, np.arange(3, dtype=np.float32))):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
    for detail in plain.get_output_details():
        np.testing.assert_array_equal(delegated.get_tensor(detail["index"]), plain.get_tensor(detail["index"]))
    assert partitions(delegated) == [8]


def test_composites_in_the_bodies_of_if_and_while_are_inlined() -> None:
    i, scalar = Spec("int32", []), Spec("bool", [])
    branch = Graph({"a": X, "b": X, "y": X}, "a", "y", [composite(2, "a", "b"), Op("NEG", "b", "y")])
    body = Graph(
        {"i": i, "a": X, "one": np.array(1, np.int32), "j": i, "y": X},
        "i a",
        "j y",
        [Op("ADD", "i one", "j"), composite(2)],
    )
    condition = Graph({"i": i, "a": X, "n": np.array(2, np.int32), "more": scalar}, "i a", "more", [Op("LESS", "i n", "more")])
    main = Graph(
        {"a": X, "c": np.array(True), "i": np.array(0, np.int32), "y": X, "j": i, "z": X},
        "a",
        "y z",
        [
            Op("IF", "c a", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=2)),
            Op("WHILE", "i a", "j z", WhileOptions(cond_subgraph_index=3, body_subgraph_index=4)),
        ],
    )
    data = graph_model(main, branch, CURVE, condition, body)
    delegate = WrappingDelegate(lambda context, node: node.op_name in ("MUL", "ADD", "NEG"), dynamic=True)
    interpreter = same_as_without(data, delegate, A, [1, 2, 3], A)
    assert planned(interpreter, 1) == planned(interpreter, 4) == ["Wrapping"]


def only(length: int) -> Callable[[Context, Node], None]:
    def prepare(context: Context, node: Node) -> None:
        if node.inputs[0].shape != (length,):
            decline(f"{node.inputs[0].size} values, where {length} are taken")
        any_length(context, node)

    return prepare


def any_length(context: Context, node: Node) -> None:
    for output in node.outputs:
        context.resize_tensor(output, node.inputs[0].shape)


def kernel(prepare: Callable[[Context, Node], None] = any_length, name: str = "my.curve") -> MutableOpResolver:
    """A kernel of the composite that gives something else than its decomposition, so that it is seen who ran."""
    served = MutableOpResolver()

    def invoke(context: Context, node: Node) -> None:
        for output in node.outputs:
            np.multiply(node.inputs[0].data, 100, output.data)

    served.add_composite(name, Registration(prepare=prepare, invoke=invoke))
    return served


def test_a_composite_with_a_kernel_stays_a_node() -> None:
    data = graph_model(around(), CURVE)
    interpreter = same_as_without(data, NodeByNode(), A, op_resolver=kernel())
    assert planned(interpreter) == ["Wrapping", "STABLEHLO_COMPOSITE", "Wrapping"]
    assert answer(interpreter, A) == [300, -400]


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_a_kernel_declines_goes_to_and_fro_with_the_shapes(dynamic: bool) -> None:
    data = graph_model(around(), CURVE)
    three = np.array([1, 2, 3], np.float32)
    interpreter = same_as_without(data, NodeByNode(dynamic=dynamic), A, three, A, three, op_resolver=kernel(only(3)))
    told = WrappingDelegate(lambda context, node: node.op_name == "NEG", dynamic=dynamic)
    left = Interpreter(model_content=data, experimental_delegates=[told], op_resolver=kernel(only(3)))
    answer(left, A)
    assert any("application declined it: 2 values, where 3 are taken" in report.why for report in left.explain())
    assert "STABLEHLO_COMPOSITE" in planned(interpreter)
    assert answer(interpreter, three) == [100, 200, 300]
    assert answer(interpreter, A) == [-20, -34]
    assert (partitions(interpreter) == [5]) is not dynamic  # with shapes that change at any time it stays a node


class Takes(SimpleDelegate):
    """Claims nodes of some ops, and gives the same number whatever they compute."""

    def __init__(self, number: float, *ops: str) -> None:
        super().__init__()
        self.number, self.ops, self.name = number, ops, f"takes {number}"

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool:
        return node.op_name in self.ops

    def create_kernel(self, params: DelegateParams) -> Any:
        return Computes(lambda x: np.full_like(x, self.number))


def test_a_delegate_gets_the_composites_that_it_claims_as_a_whole() -> None:
    data = graph_model(around(), CURVE)
    interpreter = Interpreter(model_content=data, experimental_delegates=[Takes(7, "STABLEHLO_COMPOSITE")])
    assert answer(interpreter, A) == [-7, -7]
    assert planned(interpreter) == ["NEG", "takes 7", "NEG"]
    assert answer(interpreter, [1, 2, 3]) == [-7] * 3


def test_a_later_delegate_gets_a_composite_that_was_inlined_for_an_earlier_one() -> None:
    data = graph_model(around(), CURVE)
    both = [Takes(5, "NEG"), Takes(7, "STABLEHLO_COMPOSITE")]
    interpreter = Interpreter(model_content=data, experimental_delegates=both)
    assert answer(interpreter, A) == [5, 5]
    assert planned(interpreter) == ["takes 5", "takes 7", "takes 5"]
    assert answer(interpreter, [1, 2, 3]) == [5] * 3
    assert planned(interpreter) == ["takes 5", "takes 7", "takes 5"]
    interpreter.remove_all_delegates()
    assert planned(interpreter) == ["NEG", "STABLEHLO_COMPOSITE", "NEG"]
    assert answer(interpreter, A) == [-20, -34]


class OfPrepare(Delegate):
    """Tells by its claims alone what it wants: at most one composite, and everything of some ops."""

    name = "of prepare"

    def __init__(self, flags: DelegateFlags, *ops: str, composites: int = 0) -> None:
        super().__init__()
        self.flags, self.ops, self.composites = flags, ops, composites

    def prepare(self, context: DelegateContext) -> None:
        nodes = [context.node(index) for index in context.execution_plan]
        whole = [node.index for node in nodes if node.op_name == "STABLEHLO_COMPOSITE"][: self.composites]
        claimed = [node.index for node in nodes if node.op_name in self.ops]
        context.replace_node_subsets_with_delegate_kernels(
            kernel_registration(self.name, lambda params: Computes(lambda x, *constants: np.full_like(x, 9))), [*whole, *claimed]
        )


@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DelegateFlags.ALLOW_DYNAMIC_TENSORS])
def test_composites_that_a_delegate_leaves_are_inlined_and_it_is_asked_again(flags: DelegateFlags) -> None:
    data = graph_model(around(), CURVE)
    interpreter = Interpreter(model_content=data, experimental_delegates=[OfPrepare(flags, "NEG", "MUL", "ADD")])
    assert answer(interpreter, A) == [9, 9]
    assert partitions(interpreter) == [5]
    taken = Interpreter(model_content=data, experimental_delegates=[OfPrepare(flags, "NEG", composites=1)])
    assert answer(taken, A) == [9, 9]
    assert partitions(taken) == [3]
    before = [Takes(5, "NEG"), OfPrepare(flags, "MUL", "ADD")]
    second = Interpreter(model_content=data, experimental_delegates=before)
    if not flags:  # a second delegate of dynamic shapes does not go with one of static shapes
        assert answer(second, A) == [5, 5]
        assert planned(second) == ["takes 5", "of prepare", "takes 5"]


# What stays a call -------------------------------------------------------------------------------------------

Q8, Q9 = (Spec("int8", [2], scale=scale, zero_point=1) for scale in (0.5, 0.25))


def _stays(data: bytes, **more: Any) -> None:
    interpreter = Interpreter(model_content=data, experimental_delegates=[NodeByNode(dynamic=True)], **more)
    interpreter.allocate_tensors()
    assert "STABLEHLO_COMPOSITE" in planned(interpreter)
    interpreter.invoke()


def test_a_decomposition_with_a_state_stays_a_call() -> None:
    seed = RandomOptions(seed=3, seed2=5)
    dice = Graph(
        {"a": X, "n": np.array([2], np.int32), "r": Spec("float32", [2]), "y": X},
        "a",
        "y",
        [Op("RANDOM_UNIFORM", "n", "r", seed), Op("ADD", "a r", "y", AddOptions())],
    )
    data = graph_model(around(), dice)
    interpreter = same_as_without(data, NodeByNode(dynamic=True), A, A, A)
    assert planned(interpreter) == ["Wrapping", "STABLEHLO_COMPOSITE", "Wrapping"]
    kept = Spec("float32", [2], variable=True)
    counting = Graph({"a": X, "k": kept, "y": X}, "a", "y", [Op("ADD", "a k", "y", AddOptions())])
    _stays(graph_model(around(), counting))


def test_a_custom_op_that_may_have_a_state_keeps_it_where_it_is() -> None:
    custom = Graph({"a": X, "y": X}, "a", "y", [Op("Counts", "a", "y")])
    data = graph_model(around(composite(reads="b", writes="m"), composite(reads="m", writes="c"), tensors={"m": X}), custom)
    for pure in (False, True):
        runs: list[Node] = []

        def invoke(context: Context, node: Node, runs: list[Node] = runs) -> None:
            runs.append(node)
            np.add(node.inputs[0].data, 1, node.outputs[0].data)

        served = MutableOpResolver()
        served.add_custom("Counts", Registration(prepare=like_input, invoke=invoke, pure=pure))
        claims = WrappingDelegate(lambda context, node: node.op_name == "NEG", dynamic=True)
        interpreter = Interpreter(model_content=data, experimental_delegates=[claims], op_resolver=served)
        assert answer(interpreter, A) == [1, -6]
        assert len(set(runs)) == (2 if pure else 1)


@pytest.mark.parametrize(
    ("main", "inner"),
    [
        pytest.param(
            Graph({"a": Q8, "y": Q8}, "a", "y", [composite()]),
            Graph({"a": Q9, "y": Q8}, "a", "y", [Op("QUANTIZE", "a", "y")]),
            id="another quantization",
        ),
        pytest.param(
            Graph({"a": X, "u": X, "y": X}, "a", "y", [composite(writes="u y")]),
            Graph({"a": X, "y": X}, "a", "a y", [Op("NEG", "a", "y")]),
            id="an input that is an output",
        ),
        pytest.param(
            Graph({"a": X, "u": X, "y": X}, "a", "u y", [composite(writes="u y")]),
            Graph({"a": X, "y": X}, "a", "y y", [Op("NEG", "a", "y")]),
            id="an output twice",
        ),
        pytest.param(
            Graph({"a": X, "u": X, "y": X}, "a", "u y", [composite(writes="u y")]),
            Graph({"a": X, "c": A, "y": X}, "a", "c y", [Op("NEG", "a", "y")]),
            id="a constant output",
        ),
    ],
)
def test_a_decomposition_whose_border_is_not_that_of_the_composite_stays_a_call(main: Graph, inner: Graph) -> None:
    data = graph_model(main, inner)
    _stays(data)
    spec: Any = main.tensors["a"]
    value = np.array([3, -4]).astype(spec.type)
    plain, delegated = Interpreter(model_content=data), Interpreter(model_content=data, experimental_delegates=[NodeByNode()])
    assert answer(plain, value) == answer(delegated, value)


def test_optional_inputs_that_are_left_out_stay_left_out() -> None:
    layer = Graph(
        {"a": Spec("float32", [1, 2]), "w": np.eye(2, dtype=np.float32), "y": Spec("float32", [1, 2])},
        "a",
        "y",
        [Op("FULLY_CONNECTED", "a w", "y", FullyConnectedOptions())],
    )
    row = Spec("float32", [1, 2])
    model = Model.from_bytes(graph_model(Graph({"a": row, "y": row}, "a", "y", [composite()]), layer))
    tables: Any = model.root.subgraphs
    tables[1].operators[0].inputs = np.array([0, 1, -1], np.int32)
    interpreter = same_as_without(model.to_bytes(), NodeByNode(), A[None])
    assert partitions(interpreter) == [1]


def test_a_bomb_of_composites_in_composites_stays_small() -> None:
    """Forty levels of two composites each are 2 ** 40 nodes."""
    levels = [
        Graph({"a": X, "b": X, "y": X}, "a", "y", [composite(level + 2, "a", "b"), composite(level + 2, "b", "y")])
        for level in range(40)
    ]
    data = graph_model(around(), *levels, SQUARE)
    interpreter = Interpreter(model_content=data, limits=Limits(max_subgraph_calls=1000))
    with pytest.raises(LimitError, match="were called 1000 times"):
        answer(interpreter, A)
    interpreter.modify_graph_with_delegate(NodeByNode(dynamic=True))
    assert sum(len(subgraph.nodes) for subgraph in interpreter._subgraphs) < 100_000
    with pytest.raises(LimitError, match="were called 1000 times"):
        answer(interpreter, A)


def test_the_limit_of_nodes_holds_for_inlined_ones() -> None:
    data = graph_model(around(), CURVE)
    nodes = 3 + 3
    few = Interpreter(model_content=data, experimental_delegates=[NodeByNode()], limits=Limits(max_nodes=nodes + 4))
    assert answer(few, A) == [-20, -34]
    assert planned(few) == ["Wrapping", "STABLEHLO_COMPOSITE", "Wrapping"]
    enough = Interpreter(model_content=data, experimental_delegates=[NodeByNode()], limits=Limits(max_nodes=nodes + 20))
    assert partitions(enough) == [5]


def test_a_decomposition_that_is_inlined_takes_no_memory_of_its_own() -> None:
    wide = Spec("float32", [1000], signature=[-1])
    main = Graph({"a": wide, "b": wide, "y": wide}, "a", "y", [Op("NEG", "a", "b"), composite(reads="b")])
    curve = CURVE._replace(tensors={**CURVE.tensors, "a": wide, "b": wide, "c": wide, "y": wide})
    claims = WrappingDelegate(lambda context, node: node.op_name == "NEG", dynamic=False)
    interpreter = Interpreter(model_content=graph_model(main, curve), experimental_delegates=[claims])
    answer(interpreter, np.ones(1000, np.float32))
    assert interpreter._subgraphs[0].arena_bytes >= 4000
    assert interpreter._subgraphs[1].arena_bytes == 0


# What is told of it ------------------------------------------------------------------------------------------


def test_explain_profiles_and_errors_name_the_composite_that_a_node_is_from() -> None:
    profiler = Profiler()
    nested = Graph({"a": X, "b": X, "y": X}, "a", "y", [composite(2, name="my.inner", writes="b"), Op("NEG", "b", "y")])
    data = graph_model(around(composite(1, "b", "c", "my.outer")), nested, SQUARE)
    claims = WrappingDelegate(lambda context, node: node.op_name == "NEG" and not node.origin, dynamic=True)
    interpreter = Interpreter(model_content=data, experimental_delegates=[claims], profiler=profiler)
    answer(interpreter, A)
    told = {report.op: report for report in interpreter.explain() if report.subgraph == 0}
    assert told["MUL"].origin == "my.outer > my.inner"
    assert "inlined from the composite my.outer > my.inner" in told["MUL"].why
    assert told["NEG"].origin == "my.outer"
    assert told["Wrapping"].origin == ""
    assert {event.op: event.origin for event in profiler.events if event.subgraph == 0} == {
        "Wrapping": "",
        "MUL": "my.outer > my.inner",
        "NEG": "my.outer",
    }


def test_an_error_in_an_inlined_node_names_its_composite() -> None:
    broken = Graph({"a": X, "y": X}, "a", "y", [Op("Breaks", "a", "y")])
    served = MutableOpResolver()

    def invoke(context: Context, node: Node) -> None:
        raise ValueError("no luck")

    served.add_custom("Breaks", Registration(prepare=like_input, invoke=invoke, pure=True))
    claims = WrappingDelegate(lambda context, node: node.op_name == "NEG", dynamic=True)
    interpreter = Interpreter(model_content=graph_model(around(), broken), experimental_delegates=[claims], op_resolver=served)
    with pytest.raises(InvokeError, match=r"no luck.*Node number 3 \(Breaks of the composite my.curve\) failed to invoke"):
        answer(interpreter, A)


def test_tensors_of_the_file_keep_their_numbers_and_details() -> None:
    data = graph_model(around(), CURVE)
    plain, delegated = Interpreter(model_content=data), Interpreter(model_content=data, experimental_delegates=[NodeByNode()])
    ours, theirs = delegated.get_tensor_details(), plain.get_tensor_details()
    assert [str(detail) for detail in ours[: len(theirs)]] == [str(detail) for detail in theirs]
    assert [detail["name"] for detail in ours[len(theirs) :]] == ["two", "b", "c"]
    assert str(delegated.get_tensor_details(1)) == str(plain.get_tensor_details(1))


def test_a_delegate_finds_the_tables_of_inlined_nodes_and_tensors_by_their_numbers() -> None:
    seen: list[tuple[str, Any]] = []

    class Reads(NodeByNode):
        def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
            table: Any = context.model.root.subgraphs
            table = table[context.subgraph_index]
            operator = table.operators[node.index]
            assert context.model.op_of(operator)[1] == node.op_name
            assert operator.inputs.tolist() == [tensor.index for tensor in node.inputs]
            assert operator.outputs.tolist() == [tensor.index for tensor in node.outputs]
            for tensor in (*node.inputs, *node.outputs):
                assert table.tensors[tensor.index].name == tensor.name
                if tensor.is_constant:
                    seen.append((tensor.name, context.model.tensor_bytes(table.tensors[tensor.index])))
            return super().is_node_supported(context, node)

    outer = Graph({"a": X, "b": X, "y": X}, "a", "y", [composite(2, "a", "b"), composite(2, "b", "y")])
    same_as_without(graph_model(around(), outer, CURVE), Reads())
    assert [(name, data.tobytes()) for name, data in seen] == [("two", TWO.tobytes())] * len(seen)
    assert len(seen) >= 4


def test_what_must_run_before_or_after_a_composite_does_so_after_inlining() -> None:
    """Control edges of the model's metadata, of the composite and inside of its decomposition."""
    order: list[str] = []

    class Orders(NodeByNode):
        def prepare(self, context: DelegateContext) -> None:
            nodes = {index: context.node(index) for index in context.execution_plan}
            mul = [index for index, node in nodes.items() if node.op_name == "MUL"]
            for subset in context.preview_delegate_partitioning(mul):
                order.extend(nodes[index].outputs[0].name for index in subset.nodes)
            super().prepare(context)

    free = Graph({"a": X, "b": X, "c": X, "y": X, "z": X}, "a", "y z", [composite(writes="y"), Op("NEG", "a", "z")])
    for edges in ([[(0, 1)], []], [[(1, 0)], []]):
        content = encode_control_dependencies(edges)
        data = graph_model(free, SQUARE)
        model = Model.from_bytes(data)
        root = model.root
        root.buffers = [*(root.buffers or []), type((root.buffers or [])[0])(data=np.frombuffer(content, np.uint8))]
        root.metadata = [*(root.metadata or []), Metadata(name=CONTROL_DEPENDENCIES, buffer=len(root.buffers) - 1)]
        order.clear()
        interpreter = Interpreter(model_content=model.to_bytes())
        interpreter.modify_graph_with_delegate(Orders(dynamic=True))
        assert order[:2] == (["y", "z"] if edges[0] == [(0, 1)] else ["z", "y"])


# Whole graphs at random --------------------------------------------------------------------------------------


def _random_graph(rng: np.random.Generator, levels: range, inputs: int, outputs: int) -> Graph:
    """Some nodes over tensors of one shape, composites of the given subgraphs (by number of inputs and outputs) among them."""
    tensors: dict[str, Any] = {f"a{i}": X for i in range(inputs)} | {"k": rng.integers(-2, 3, 1).astype(np.float32)}
    there, ops = list(tensors), []
    for number in range(int(rng.integers(2, 6))):
        made = [f"t{number}"]
        kind = rng.integers(5)
        if kind < 2 and len(levels):
            index = int(rng.choice(levels))
            made = [f"t{number}_{i}" for i in range(2)]
            reads = " ".join(rng.choice(there, 2))
            ops.append(composite(index, reads, " ".join(made), f"my.level{index}"))
        elif kind == 2:
            ops.append(Op("NEG", str(rng.choice(there)), made[0]))
        else:
            options = AddOptions() if kind == 3 else MulOptions()
            ops.append(Op("ADD" if kind == 3 else "MUL", " ".join(rng.choice(there, 2)), made[0], options))
        tensors |= dict.fromkeys(made, X)
        there += made
    for i in range(outputs):
        tensors[f"y{i}"] = X
        ops.append(Op("ADD", f"{rng.choice(there)} a{i}", f"y{i}", AddOptions()))
    return Graph(tensors, " ".join(f"a{i}" for i in range(inputs)), " ".join(f"y{i}" for i in range(outputs)), ops)


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_give_the_same_bits_whoever_claims_what(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    inner = [_random_graph(rng, range(level + 1, count + 1), 2, 2) for level in range(1, count + 1)]
    data = graph_model(_random_graph(rng, range(1, count + 1), 2, 2), *inner)
    served = kernel(only(3), "my.level1") if rng.integers(2) else MutableOpResolver()
    plain, delegated = (Interpreter(model_content=data, op_resolver=served) for _ in range(2))
    dynamic = bool(rng.integers(2))
    lots = rng.integers(4, size=500)
    for number in range(int(rng.integers(1, 3))):
        delegated.modify_graph_with_delegate(
            WrappingDelegate(
                lambda context, node, number=number: bool(lots[(node.index + 7 * number) % 500] > (node.op_name[0] == "S") * 2),
                dynamic=dynamic,
            )
        )
    for length in (2, 3, 2, 3):
        values = rng.integers(-3, 4, (2, length)).astype(np.float32)
        for interpreter in (plain, delegated):
            for detail, value in zip(interpreter.get_input_details(), values):
                interpreter.resize_tensor_input(detail["index"], value.shape)
            interpreter.allocate_tensors()
            for detail, value in zip(interpreter.get_input_details(), values):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
        for detail in plain.get_output_details():
            np.testing.assert_array_equal(delegated.get_tensor(detail["index"]), plain.get_tensor(detail["index"]))
