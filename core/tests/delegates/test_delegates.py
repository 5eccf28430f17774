"""Delegates: what they claim runs their way, the rest gives the same numbers, and failures leave no trace."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, add_one, adding, answer, interpret, like_input

from oplet import (
    BuiltinOperator,
    Context,
    Delegate,
    DelegateFlags,
    DelegateKernel,
    DelegateParams,
    DelegateRegistry,
    Interpreter,
    ModelBuilder,
    Node,
    Registration,
    SimpleDelegate,
    load_delegate,
)
from oplet.delegates.delegate import DelegateContext
from oplet.errors import DelegateApplicationError, DelegateError, UnresolvedOpError
from oplet_testing import WrappingDelegate


class Adder(DelegateKernel):
    """Adds one per claimed node, all at once."""

    def __init__(self, params: DelegateParams, log: list[str]) -> None:
        self.params = params
        self.log = log
        log.append(f"create {[node.index for node in params.nodes]}")

    def prepare(self, context: Context, node: Node) -> None:
        for output in node.outputs:
            context.resize_tensor(output, node.inputs[0].shape)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        source, targets = node.inputs[0].data, [t.data for t in node.outputs]
        count = len(self.params.nodes)

        def run() -> None:
            for target in targets:
                np.add(source, F32(count), target)

        return run


class Claims(SimpleDelegate):
    name = "Claims"

    def __init__(self, wanted: set[int], **settings: int) -> None:
        super().__init__()
        self.wanted = wanted
        self.log: list[str] = []
        for key, value in settings.items():
            setattr(self, key, value)

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        return node.index in self.wanted or f"{node.op_name} is not wanted"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Adder(params, self.log)


def make(*delegates: Delegate, **arguments: Any) -> Interpreter:
    return interpret(adding(6), *delegates, **arguments)


@pytest.mark.parametrize("wanted", [set(), {0}, {5}, {1, 2}, {0, 2, 4}, {0, 1, 2, 3, 4, 5}])
def test_whatever_is_claimed_the_answer_is_the_same(wanted: set[int]) -> None:
    assert answer(make(Claims(wanted))) == [7, 8, 9]


def test_each_partition_becomes_one_node_of_the_plan() -> None:
    delegate = Claims({1, 2, 4})
    interpreter = make(delegate)
    plan = [(r.op, r.why) for r in interpreter.explain()]
    assert [op for op, _ in plan] == ["AddOne", "Claims", "AddOne", "Claims", "AddOne"]
    assert plan[1][1] == "claimed by the delegate"
    assert plan[2][1].endswith("; Claims left it alone: AddOne is not wanted")
    assert delegate.log == ["create [1, 2]", "create [4]"]
    [report] = interpreter.delegation_reports()
    assert report.partitions == [[1, 2], [4]]
    assert report.unsupported == {0: "AddOne is not wanted", 3: "AddOne is not wanted", 5: "AddOne is not wanted"}


def test_small_and_surplus_partitions_are_left_alone_with_the_reason() -> None:
    delegate = Claims({0, 1, 3, 5}, max_delegated_partitions=1)
    assert answer(interpreter := make(delegate)) == [7, 8, 9]
    assert delegate.log == ["create [0, 1]"]
    assert "max_delegated_partitions=1" in interpreter.delegation_reports()[0].unsupported[3]
    lonely = Claims({0, 1, 3}, min_nodes_per_partition=2)
    interpreter = make(lonely)
    assert lonely.log == ["create [0, 1]"]
    assert "min_nodes_per_partition=2" in interpreter.delegation_reports()[0].unsupported[3]


def test_without_fusion_each_claimed_node_is_a_partition() -> None:
    delegate = Claims({1, 2})
    make(delegate, experimental_disable_delegate_node_fusion=True)
    assert delegate.log == ["create [1]", "create [2]"]


def test_a_delegate_may_claim_ops_that_nobody_else_serves() -> None:
    assert answer(make(Claims(set(range(6))), resolved=False)) == [7, 8, 9]
    with pytest.raises(UnresolvedOpError):
        make(Claims({0, 1}), resolved=False).allocate_tensors()


def test_several_delegates_apply_in_turn_and_see_what_is_left() -> None:
    first, second = Claims({0, 1}), Claims({0, 1, 2, 3})
    assert answer(make(first, second)) == [7, 8, 9]
    assert (first.log, second.log) == (["create [0, 1]"], ["create [2, 3]"])


def test_a_resized_input_prepares_the_delegate_s_kernel_again() -> None:
    interpreter = make(Claims({1, 2}))
    interpreter.resize_tensor_input(0, [5])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.zeros(5, F32))
    interpreter.invoke()
    assert interpreter.get_tensor(6).tolist() == [6] * 5


class SmallAdder(Adder):
    def prepare(self, context: Context, node: Node) -> None:
        if node.inputs[0].size > 3:
            raise DelegateApplicationError("it is too large")
        super().prepare(context, node)


class SmallOnly(Claims):
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        return super().is_node_supported(context, node) if node.inputs[0].size < 4 else "it is too large"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return SmallAdder(params, self.log)


def test_a_kernel_that_cannot_work_with_other_shapes_has_its_delegate_asked_again() -> None:
    interpreter = make(SmallOnly({1, 2}))
    for size, partitions in ((3, [[1, 2]]), (5, []), (2, [[1, 2]])):
        interpreter.resize_tensor_input(0, [size])
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.zeros(size, F32))
        interpreter.invoke()
        assert interpreter.get_tensor(6).tolist() == [6] * size
        assert interpreter.delegation_reports()[0].partitions == partitions


class Fails(Claims):
    def prepare(self, context: DelegateContext) -> None:
        super().prepare(context)
        raise ValueError("the driver is too old")


def test_a_delegate_that_fails_leaves_the_graph_as_it_was() -> None:
    interpreter = make()
    with pytest.raises(
        DelegateError, match="Restored original execution plan after delegate application failure.*driver is too old"
    ):
        interpreter.modify_graph_with_delegate(Fails({1, 2}))
    assert [r.op for r in interpreter.explain()] == ["AddOne"] * 6
    assert answer(interpreter) == [7, 8, 9]


def test_no_delegate_at_all_is_refused() -> None:
    with pytest.raises(DelegateError, match="Null delegate"):
        make().modify_graph_with_delegate(None)  # type: ignore[arg-type]


def test_a_delegate_s_name_in_place_of_the_delegate_is_refused_with_what_makes_one() -> None:
    with pytest.raises(
        DelegateError, match=re.escape("has 'some', which is no oplet Delegate; load_delegate('some') makes one.")
    ):
        make("some")  # type: ignore[arg-type]


def test_init_and_free_of_a_kernel_are_balanced_also_when_the_delegate_fails() -> None:
    calls: list[str] = []

    class Counted(Delegate):
        fail = False

        def prepare(self, context: DelegateContext) -> None:
            registration = Registration(
                init=lambda context, params: calls.append("init"),
                free=lambda context, user_data: calls.append("free"),
                prepare=like_input,
                invoke=add_one,
            )
            context.replace_node_subsets_with_delegate_kernels(registration, [0])
            if self.fail:
                raise ValueError("no")

    interpreter = make(Counted())
    assert calls == ["init"]
    failing = Counted()
    failing.fail = True
    with pytest.raises(DelegateError):
        make(failing)
    assert calls == ["init", "init", "free"]
    del interpreter
    gc.collect()
    assert calls == ["init", "init", "free", "free"]


def test_options_reach_the_delegate_as_strings() -> None:
    registry = DelegateRegistry()
    registry.add("plain", Delegate)
    assert registry.find("plain").create({"threads": 2, "fast": True}).options == {"threads": "2", "fast": "True"}


def test_an_unknown_or_ambiguous_name_is_refused_with_what_there_is() -> None:
    from oplet.ops.serving.provenance import Provenance

    registry = DelegateRegistry()
    with pytest.raises(DelegateError, match="Failed to load delegate from nope: .*the name of one after installing its package"):
        registry.find("nope")
    for package in ("oplet-a", "oplet-b"):
        other = DelegateRegistry(Provenance("p", package, "1"))
        other.add("same", Delegate)
        registry.merge(other)
    with pytest.raises(DelegateError, match="oplet-a 1 and oplet-b 1 both bring it"):
        registry.find("same")
    assert registry.find("oplet-b:same").provenance.distribution == "oplet-b"
    with pytest.raises(DelegateError, match="not a name"):
        registry.add("", Delegate)
    with pytest.raises(DelegateError, match="neither a callable"):
        registry.add("x", 5)  # type: ignore[arg-type]


def test_an_option_without_a_value_is_told_as_such() -> None:
    registry = DelegateRegistry()
    registry.add("plain", Delegate)
    for text in ("plain:min_nodes", "oplet-plain:plain:min_nodes"):
        with pytest.raises(DelegateError, match=f"'min_nodes' behind the delegate '.*plain' is no option.*as in {text}=VALUE"):
            registry.find(text)


def test_reports_call_a_delegate_what_it_was_asked_for_by() -> None:
    registry = DelegateRegistry()
    registry.add("fast", Delegate)
    assert registry.find("fast").create().name == "fast"
    assert Delegate().name != "fast"


def test_a_delegate_that_cannot_be_loaded_is_a_value_error() -> None:
    """What programs for LiteRT catch around load_delegate; before it is there, and where it refuses its options."""
    registry = DelegateRegistry()
    registry.add("choosy", lambda options: 1 / 0)
    with pytest.raises(ValueError, match="Failed to load delegate from choosy"):
        registry.find("choosy").create({})
    with pytest.raises(ValueError, match="Failed to load delegate from libedgetpu.so.1"):
        load_delegate("libedgetpu.so.1")


def test_the_kernel_s_node_is_a_delegate_node() -> None:
    interpreter = make(Claims({0}))
    assert interpreter._subgraphs[0].nodes[-1].op is BuiltinOperator.DELEGATE


@pytest.mark.parametrize("constants_first", [False, True])
def test_a_delegate_may_have_what_reads_only_constants_go_first(constants_first: bool) -> None:
    builder = ModelBuilder()
    main = builder.add_subgraph()
    weights = main.add_tensor("weights", "float32", [4], data=np.full(4, 2, np.float32))
    x, y, wide, z = (main.add_tensor(name, "float32", [4]) for name in "xywz")
    main.add_operator("ABS", [x], [y])
    main.add_operator("NEG", [weights], [wide])
    main.add_operator("MUL", [y, wide], [z])
    main.set_inputs(x)
    main.set_outputs(z)
    delegate = WrappingDelegate({0, 2})
    delegate.constants_first = constants_first
    interpreter = Interpreter(model_content=builder.to_bytes(), experimental_delegates=[delegate])
    [report] = interpreter.delegation_reports()
    assert report.partitions == ([[0, 2]] if constants_first else [[0], [2]])
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, np.array([1, -2, 3, 0], np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(z), [-2, -4, -6, 0])
