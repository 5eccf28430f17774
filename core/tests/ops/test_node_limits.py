"""Limits that a registration declares: checked when they are made, looked at before each prepare, told when they turn a node away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.tests.chains import Computes, answer, like_input
from flatbuffers import flexbuffers

from oplet import (
    Context,
    Delegate,
    DelegateContext,
    DelegateKernel,
    DelegateParams,
    Interpreter,
    MutableOpResolver,
    Node,
    NodeLimits,
    Registration,
    SimpleDelegate,
    TensorType,
    decline,
)
from oplet.errors import InvokeError, OpletError, PrepareError, ResolverError
from oplet.ops.serving.resolver import ChainOpResolver
from oplet.schema.options import IfOptions, ReshapeOptions, SoftmaxOptions, WhileOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec, one_op_model
from oplet_tools.describing.doctor import examine
from oplet_tools.describing.operators import operators_page

FLOAT, INT8, UINT8 = TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8
X = Spec("float32", [2], signature=[-1])


class Kernel:
    """A kernel that multiplies by a factor, and the calls of its methods."""

    def __init__(self, factor: float, limits: NodeLimits | None = None, **more: Any) -> None:
        self.calls: list[str] = []
        methods = {
            "init": lambda context, buffer: self.calls.append("init") or "state",
            "free": lambda context, state: self.calls.append(f"free {state}"),
            "prepare": self.prepare,
            "invoke": self.invoke,
        }
        self.factor = factor
        self.registration = Registration(**{**methods, "limits": limits, **more})

    def prepare(self, context: Context, node: Node) -> None:
        self.calls.append("prepare")
        assert node.user_data == "state"
        like_input(context, node)

    def invoke(self, context: Context, node: Node) -> None:
        np.multiply(node.inputs[0].data, self.factor, out=node.outputs[0].data, casting="unsafe")


def chain(*kernels: Kernel, op: str = "Own") -> ChainOpResolver:
    resolvers = []
    for kernel in kernels:
        resolvers.append(MutableOpResolver())
        if op.isupper():
            resolvers[-1].add_builtin(op, kernel.registration)
        else:
            resolvers[-1].add_custom(op, kernel.registration)
    return ChainOpResolver(resolvers)


# What can be declared ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"inputs": [FLOAT]}, "as inputs; give a list for each of the first tensors"),
        ({"inputs": [["float32"]]}, "'float32' among the types of inputs; give TensorType.FLOAT32"),
        ({"outputs": [[0]]}, "0 among the types of outputs"),
        ({"ranks": [[-1]]}, "-1 among the ranks; a tensor has 0 dimensions or more"),
        ({"ranks": [[True]]}, "True among the ranks"),
        ({"ranks": [2]}, r"\[2\] as ranks; give a list for each"),
        ({"constant": 1}, r"1 as constant; give the positions of inputs: \[1\]"),
        ({"constant": ["weights"]}, "'weights' among the constant inputs"),
        ({"options": {"beta": 1.0}, "table": SoftmaxOptions}, "give a list of values for each name"),
        ({"options": {"beta": "1.0"}}, "give a list of values for each name"),
        ({"options": ["beta"]}, "give a list of values for each name"),
        ({"options": {"alpha": [1.0]}, "table": SoftmaxOptions}, "'alpha', which is no option of SoftmaxOptions; it has beta"),
        ({"table": "SoftmaxOptions"}, "'SoftmaxOptions' as table; give a class of oplet.schema.options"),
    ],
)
def test_limits_that_make_no_sense_are_refused_where_they_are_declared(arguments: Any, words: str) -> None:
    with pytest.raises(ResolverError, match=words):
        NodeLimits(**arguments)


def test_a_registration_whose_limits_are_none_is_refused_when_it_is_added() -> None:
    wrong: Any = {"inputs": [[FLOAT]]}
    with pytest.raises(ResolverError, match="The registration of Own has {'inputs': .* as limits, which are no NodeLimits"):
        MutableOpResolver().add_custom("Own", Registration(invoke=print, limits=wrong))


def test_limits_say_in_words_what_they_are() -> None:
    limits = NodeLimits([[FLOAT], [], [INT8]], [[FLOAT]], [[2, 4]], [1], {"beta": [1.0]}, SoftmaxOptions)
    assert str(limits) == (
        "input 0 of type FLOAT32 and of 2 or 4 dimensions; input 1 that is constant; input 2 of type INT8; "
        "output 0 of type FLOAT32; beta 1.0"
    )
    assert str(NodeLimits()) == "any node"
    assert hash(Registration(limits=limits)) == hash(Registration(limits=NodeLimits(*vars(limits).values())))


# Who gets a node ---------------------------------------------------------------------------------------------

TWO_DIMENSIONS = np.ones((1, 2), np.float32)
OPTIONS = bytes(flexbuffers.Dumps({"mode": "fast", "scale": 0.1}))


@pytest.mark.parametrize(
    ("limits", "inside"),
    [
        (NodeLimits(inputs=[[FLOAT]]), True),
        (NodeLimits(inputs=[[INT8, UINT8]]), False),
        (NodeLimits(inputs=[[], [], [INT8]]), True),
        (NodeLimits(outputs=[[INT8]]), False),
        (NodeLimits(ranks=[[1, 2]]), True),
        (NodeLimits(ranks=[[2]]), False),
        (NodeLimits(ranks=[[], [1]]), False),
        (NodeLimits(constant=[1, 7]), True),
        (NodeLimits(constant=[0]), False),
        (NodeLimits(options={"mode": ["fast", "exact"], "scale": [0.1], "missing": [None]}), True),
        (NodeLimits(options={"mode": ["exact"]}), False),
        (NodeLimits(options={"missing": [1]}), False),
        (NodeLimits(), True),
    ],
)
def test_a_node_outside_the_limits_goes_to_the_next_provider_and_no_method_of_the_first_sees_it(
    limits: NodeLimits, inside: bool
) -> None:
    first, second = Kernel(2, limits), Kernel(3)
    model = one_op_model("Own", [X, TWO_DIMENSIONS], [X], custom_options=OPTIONS)
    interpreter = Interpreter(model_content=model, op_resolver=chain(first, second))
    assert answer(interpreter, [1, 2]) == ([2, 4] if inside else [3, 6])
    [report] = interpreter.explain()
    assert report.why == "registered" + ("" if inside else f"; application declined it: {limits.refusal(node_of(interpreter))}")
    interpreter.close()
    assert (first.calls, second.calls)[inside] == []
    assert (first.calls, second.calls)[not inside][::2] == ["init", "free state"]


def node_of(interpreter: Interpreter) -> Node:
    return interpreter._subgraphs[0].nodes[0]


@pytest.mark.parametrize(("beta", "inside"), [(1.0, True), (0.1, True), (2.0, False), (None, False)])
def test_options_of_a_builtin_operator_count_with_their_defaults(beta: float | None, inside: bool) -> None:
    limits = NodeLimits(options={"beta": [1.0, 0.1]}, table=SoftmaxOptions)
    first, second = Kernel(2, limits), Kernel(3)
    model = one_op_model("SOFTMAX", [X], [X], None if beta is None else SoftmaxOptions(beta=beta))
    assert answer(Interpreter(model_content=model, op_resolver=chain(first, second, op="SOFTMAX")), [1, 2]) == (
        [2, 4] if inside else [3, 6]
    )


def test_options_of_another_class_and_garbage_turn_a_node_away() -> None:
    limits = NodeLimits(options={"new_shape": [None]}, table=ReshapeOptions)
    model = one_op_model("SOFTMAX", [X], [X], SoftmaxOptions(beta=1.0))
    assert answer(Interpreter(model_content=model, op_resolver=chain(Kernel(2, limits), Kernel(3), op="SOFTMAX")), [1, 2]) == [
        3,
        6,
    ]
    garbage = one_op_model("Own", [X], [X], custom_options=b"\xff\xff\xff")
    first = Kernel(2, NodeLimits(options={"mode": [None]}))
    assert answer(Interpreter(model_content=garbage, op_resolver=chain(first, Kernel(3))), [1, 2]) == [3, 6]
    assert first.calls == []


def test_the_chain_starts_from_the_first_provider_in_each_prepare() -> None:
    first, second = Kernel(2, NodeLimits(ranks=[[2]])), Kernel(3, NodeLimits(ranks=[[1]]))
    third = Kernel(5)
    interpreter = Interpreter(model_content=one_op_model("Own", [X], [X]), op_resolver=chain(first, second, third))
    assert (first.calls, second.calls, third.calls) == ([], [], [])
    for _ in range(2):
        assert answer(interpreter, [1, 2]) == [3, 6]
        assert answer(interpreter, [[1, 2]]) == [[2, 4]]
        assert answer(interpreter, [[[1, 2]]]) == [[[5, 10]]]
    interpreter.close()
    for kernel in (first, second, third):
        assert (kernel.calls[0], kernel.calls[-1]) == ("init", "free state")
        assert kernel.calls.count("init") == kernel.calls.count("free state") == 1


def test_init_that_fails_outside_the_limits_is_never_called() -> None:
    def fail(context: Context, buffer: Any) -> None:
        raise ValueError("only maps of floats")

    first = Kernel(2, NodeLimits(inputs=[[INT8]]), init=fail)
    assert answer(Interpreter(model_content=one_op_model("Own", [X], [X]), op_resolver=chain(first, Kernel(3))), [1, 2]) == [3, 6]


def test_when_nobody_is_left_one_sentence_names_every_package_and_its_reason(site: Any) -> None:
    source = """
        from oplet import NodeLimits, Registration, TensorType, decline, hookimpl
        {head}
        def prepare(context, node):
            decline("not today")

        @hookimpl
        def register_ops(resolver):
            resolver.add_custom("Own", Registration(prepare=prepare, invoke=print, limits={limits}))
        """
    site.add("oplet-first", "1.2", source=source.format(head="", limits="NodeLimits(inputs=[[TensorType.INT8]])"))
    site.add("oplet-second", "3.4", source=source.format(head='OPLET_TIER = "fast"', limits="NodeLimits(ranks=[[4]])"))
    site.add("oplet-third", "5.6", source=source.format(head='OPLET_TIER = "builtin"', limits=None))
    interpreter = Interpreter(model_content=one_op_model("Own", [X], [X]), plugins=site.manager())
    with pytest.raises(PrepareError) as caught:
        interpreter.allocate_tensors()
    assert str(caught.value).startswith(
        "nobody serves the node: oplet-first 1.2 declines it: input 0 is of type FLOAT32, and it serves INT8 there; oplet-second 3.4 "
        "declines it: input 0 has 1 dimensions, and it serves 4 there; oplet-third 5.6 declines it: not today. Node number 0 (Own)"
    )


# Wherever nodes are prepared ---------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 3])
def test_nodes_in_the_bodies_of_if_and_while_are_declined_and_taken_as_their_shapes_change(length: int) -> None:
    def check(context: Context, node: Node) -> None:
        if node.inputs[0].shape != (3,):
            decline("not three values")
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    first, second = Kernel(3, prepare=check), Kernel(2)
    i, flag = Spec("int32", []), Spec("bool", [])
    branch = Graph({"a": X, "y": X}, "a", "y", [Op("Own", "a", "y")])
    condition = Graph({"i": i, "a": X, "n": np.array(2, np.int32), "more": flag}, "i a", "more", [Op("LESS", "i n", "more")])
    body = Graph(
        {"i": i, "a": X, "one": np.array(1, np.int32), "j": i, "y": X},
        "i a",
        "j y",
        [Op("ADD", "i one", "j"), Op("Own", "a", "y")],
    )
    main = Graph(
        {"a": X, "c": np.array(True), "i": np.array(0, np.int32), "y": X, "j": i, "z": X},
        "a",
        "z",
        [
            Op("IF", "c a", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=1)),
            Op("WHILE", "i y", "j z", WhileOptions(cond_subgraph_index=2, body_subgraph_index=3)),
        ],
    )
    interpreter = Interpreter(model_content=graph_model(main, branch, condition, body), op_resolver=chain(first, second))
    factor = {2: 8, 3: 27}
    assert answer(interpreter, [1] * length) == [factor[length]] * length
    assert answer(interpreter, [1] * (5 - length)) == [factor[5 - length]] * (5 - length)
    interpreter.close()
    assert first.calls.count("init") == first.calls.count("free state") == 2


def test_a_state_of_the_first_kernel_is_still_there_when_the_node_comes_back_to_it() -> None:
    from oplet import Allocation

    def prepare(context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)
        total = context.add_temporary(node, (1,), allocation=Allocation.PERSISTENT)
        total.is_variable = False

    def invoke(context: Context, node: Node) -> None:
        total = node.temporaries[0].data
        total += 1
        node.outputs[0].data[...] = total

    first = Kernel(1, NodeLimits(ranks=[[1]]), prepare=prepare, invoke=invoke)
    interpreter = Interpreter(model_content=one_op_model("Own", [X], [X]), op_resolver=chain(first, Kernel(7)))
    assert answer(interpreter, [0, 0]) == [1, 1]
    assert answer(interpreter, [0, 0]) == [2, 2]
    assert answer(interpreter, [[1]]) == [[7]]
    assert answer(interpreter, [0, 0]) == [3, 3]


def test_a_node_of_constants_is_folded_by_whoever_serves_it() -> None:
    first, second = Kernel(2, NodeLimits(inputs=[[INT8]]), pure=True), Kernel(3, pure=True)
    graph = Graph(
        {"a": X, "c": np.array([1, 2], np.float32), "b": X, "y": X}, "a", "y", [Op("Own", "c", "b"), Op("ADD", "a b", "y")]
    )
    interpreter = Interpreter(model_content=graph_model(graph), op_resolver=chain(first, second))
    assert answer(interpreter, [1, 1]) == [4, 7]
    assert first.calls == []


def test_composites_go_by_limits_to_the_next_kernel_and_then_to_their_decomposition() -> None:
    first, second = MutableOpResolver(), MutableOpResolver()
    limits = NodeLimits(ranks=[[2]], options={"axis": [1, None]})
    first.add_composite("my.op", Kernel(2, limits).registration)
    second.add_composite("my.op", Kernel(3, NodeLimits(ranks=[[1]], options={"axis": [None]})).registration)
    for attributes, values, wanted in (
        ({"axis": 1}, [[1, 2]], [[2, 4]]),
        ({}, [[1, 2]], [[2, 4]]),
        ({}, [1, 2], [3, 6]),
        ({"axis": 5}, [3, 4], [9, 16]),
    ):
        options = StableHLOCompositeOptions(
            name="my.op",
            decomposition_subgraph_index=1,
            composite_attributes=np.frombuffer(bytes(flexbuffers.Dumps(attributes)), np.uint8),
        )
        main = Graph({"a": X, "y": X}, "a", "y", [Op("STABLEHLO_COMPOSITE", "a", "y", options)])
        square = Graph({"a": X, "y": X}, "a", "y", [Op("MUL", "a a", "y")])
        interpreter = Interpreter(model_content=graph_model(main, square), op_resolver=ChainOpResolver([first, second]))
        assert answer(interpreter, values) == wanted


class Doubling(SimpleDelegate):
    """A delegate that claims what a provider declined."""

    name = "doubling"

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        return node.op_name == "Own"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Computes(lambda x: 2 * x)


def test_a_delegate_claims_a_node_that_everybody_declines_and_gives_it_back_to_whoever_serves_it() -> None:
    declining = Kernel(3, NodeLimits(inputs=[[INT8]]))
    interpreter = Interpreter(
        model_content=one_op_model("Own", [X], [X]), op_resolver=chain(declining, Kernel(5)), experimental_delegates=[Doubling()]
    )
    assert answer(interpreter, [1, 2]) == [2, 4]
    interpreter.close()
    assert declining.calls == []


# What is told ------------------------------------------------------------------------------------------------


def test_the_page_of_operators_and_the_doctor_tell_limits(site: Any, tmp_path: Any) -> None:
    source = """
        from oplet import NodeLimits, Registration, TensorType, hookimpl
        {head}
        @hookimpl
        def register_ops(resolver):
            resolver.add_builtin("SOFTMAX", Registration(invoke=print, limits={limits}))
        """
    limits = "NodeLimits(inputs=[[TensorType.FLOAT32]], ranks=[[2]])"
    site.add("oplet-quick", source=source.format(head="", limits=limits))
    site.add("oplet-base", source=source.format(head='OPLET_TIER = "builtin"', limits=None))
    page = operators_page(site.manager().resolver(), "oplet-quick")
    assert "| SOFTMAX | 1 | any; only input 0 of type FLOAT32 and of 2 dimensions |" in page
    path = tmp_path / "model.tflite"
    path.write_bytes(one_op_model("SOFTMAX", [X], [X], SoftmaxOptions()))
    [diagnosis] = examine(path, site.manager()).operators
    assert diagnosis.provider == "oplet-quick 1.0 (input 0 of type FLOAT32 and of 2 dimensions), else oplet-base 1.0"


# Errors name the package -------------------------------------------------------------------------------------


def failing(where: str, error: BaseException) -> Registration:
    def fail(*arguments: Any) -> Any:
        raise error

    methods: dict[str, Any] = {"prepare": like_input, "invoke": lambda context, node: None, where: fail}
    if where == "thunk":
        methods |= {"bind": lambda context, node: fail}
        del methods["thunk"], methods["invoke"]
    return Registration(pure=where == "invoke", **methods)


def errors() -> list[BaseException]:
    from oplet.errors import CustomOptionsError, LimitError
    from oplet.ops.context import EnsureError

    return [
        ValueError("wrong"),
        EnsureError("wrong"),
        CustomOptionsError("wrong"),
        LimitError("wrong"),
        MemoryError("wrong"),
        KeyError("wrong"),
        OpletError("wrong"),
    ]


@pytest.mark.parametrize("error", errors(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["init", "prepare", "bind", "invoke", "thunk", "free"])
@pytest.mark.parametrize("folded", [False, True])
def test_every_error_of_a_kernel_names_its_package_and_its_version(
    where: str, error: BaseException, folded: bool, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys
    from types import ModuleType

    helper = ModuleType("failing_kernel")
    helper.__dict__["REGISTRATION"] = failing(where, error)
    monkeypatch.setitem(sys.modules, "failing_kernel", helper)
    site.add(
        "oplet-own",
        "7.8",
        source="""
        from oplet import hookimpl

        @hookimpl
        def register_ops(resolver):
            resolver.add_custom("Own", "failing_kernel:REGISTRATION")
        """,
    )
    if where == "free":
        registration = failing("prepare", error)
        helper.__dict__["REGISTRATION"] = Registration(
            init=lambda context, buffer: 1, free=registration.prepare, invoke=lambda context, node: None
        )
    x = np.ones(2, np.float32) if folded else X

    def live() -> None:
        interpreter = Interpreter(model_content=one_op_model("Own", [x], [X]), plugins=site.manager())
        interpreter.allocate_tensors()
        interpreter.invoke()
        interpreter.close()

    with pytest.raises(OpletError, match=r"wrong.*Node number 0 \(Own\) failed to \w+ in the kernel of oplet-own 7\.8: it reads"):
        live()


def test_errors_of_a_delegate_s_kernel_name_the_delegate() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("out of order")

    class Breaking(Doubling):
        name = "breaking"

        def create_kernel(self, params: DelegateParams) -> DelegateKernel:
            return Computes(fail)

    delegate: Delegate = Breaking()
    interpreter = Interpreter(
        model_content=one_op_model("Own", [X], [X]), op_resolver=chain(Kernel(1)), experimental_delegates=[delegate]
    )
    with pytest.raises(InvokeError, match="out of order.*failed to invoke in the kernel of the delegate breaking: it reads"):
        answer(interpreter, [1, 2])
