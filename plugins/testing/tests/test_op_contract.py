"""Each check of the contract suite can fail: for every rule there is a kernel here that breaks it, and is found out."""

from __future__ import annotations

import doctest
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import double, like_input

from oplet import Context, MutableOpResolver, Node, Registration, TensorType, ensure, ensure_type
from oplet_testing import OpContract, Spec, first_failure, one_op_model, op_contract

VECTOR = Spec("float32", [4])
CHECKS = sorted(name for name in dir(OpContract) if name.startswith("test_"))


def resolver_of(registration: Registration, newest: int = 1) -> MutableOpResolver:
    made = MutableOpResolver()
    made.add_custom("Double", registration, 1, newest)
    return made


def contract_of(resolver: Any, **said: Any) -> OpContract:
    about = {
        "model": one_op_model("Double", [VECTOR], [VECTOR]),
        "inputs": [np.array([1, -2, 3, 0.5], np.float32)],
        "op_resolver": resolver,
        "plugins": [],
        "reference": staticmethod(lambda x: x * np.float32(2)),
        **said,
    }
    return type("Contract", (OpContract,), about)()


def checked(context: Context, node: Node) -> None:
    ensure(len(node.inputs) == 1, "it takes one input.")
    ensure_type(node.inputs[0], TensorType.FLOAT32)
    like_input(context, node)


GOOD = Registration(prepare=checked, invoke=double)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("pure", [False, True])
def test_a_kernel_that_keeps_the_rules_passes(check: str, pure: bool) -> None:
    getattr(contract_of(resolver_of(Registration(prepare=checked, invoke=double, pure=pure))), check)()


def a_state_that_prepare_makes() -> Registration:
    def free(context: Context, state: Any) -> None:
        state["buffer"].fill(0)  # not there if prepare never ran

    def prepare(context: Context, node: Node) -> None:
        like_input(context, node)
        node.user_data["buffer"] = np.zeros(4)

    return Registration(init=lambda context, buffer: {}, free=free, prepare=prepare, invoke=double)


class State:
    pass


def states_kept_for_ever() -> Registration:
    kept = []

    def init(context: Context, buffer: Any) -> State:
        kept.append(State())
        return kept[-1]

    return Registration(init=init, prepare=like_input, invoke=double)


def a_factor_that_grows_with_each_prepare() -> Registration:
    def prepare(context: Context, node: Node) -> None:
        like_input(context, node)
        node.user_data[0] += 1

    def invoke(context: Context, node: Node) -> None:
        np.multiply(node.inputs[0].data, node.user_data[0], out=node.outputs[0].data)

    return Registration(init=lambda context, buffer: [0], prepare=prepare, invoke=invoke)


def the_first_size_for_ever() -> Registration:
    def invoke(context: Context, node: Node) -> None:
        count = node.cached("count", (), lambda: node.inputs[0].shape[0])
        node.outputs[0].data[:] = 0
        np.multiply(node.inputs[0].data[:count], 2, out=node.outputs[0].data[:count])

    return Registration(prepare=like_input, invoke=invoke)


def the_first_values_for_ever() -> Registration:
    def bind(context: Context, node: Node) -> Callable[[], None]:
        answer: list[Any] = []

        def run() -> None:
            if not answer:
                answer.append(node.inputs[0].data * np.float32(2))
            node.outputs[0].data[...] = answer[0]

        return run

    return Registration(prepare=like_input, bind=bind)


def a_buffer_from_before() -> Registration:
    def invoke(context: Context, node: Node) -> None:
        x, y = node.inputs[0].data, node.outputs[0].data
        held = node.cached(("arrays", x.shape), (), lambda: (x, y))
        np.multiply(held[0], 2, out=y)
        np.copyto(held[1], y)

    return Registration(prepare=like_input, invoke=invoke)


def a_division_by_the_number_of_elements() -> Registration:
    def prepare(context: Context, node: Node) -> None:
        like_input(context, node)
        node.prepared = 1 // node.inputs[0].size

    return Registration(prepare=prepare, invoke=double)


def nothing_at_all() -> Registration:
    return Registration(prepare=like_input, invoke=lambda context, node: None)


def the_first_element_only() -> Registration:
    def invoke(context: Context, node: Node) -> None:
        np.multiply(node.inputs[0].data[:1], 2, out=node.outputs[0].data[:1])

    return Registration(prepare=like_input, invoke=invoke)


def scratch_that_nobody_wrote() -> Registration:
    def prepare(context: Context, node: Node) -> None:
        like_input(context, node)
        node.prepared = context.add_temporary(node, node.inputs[0].shape)

    def invoke(context: Context, node: Node) -> None:
        np.multiply(node.inputs[0].data, 2, out=node.outputs[0].data)
        node.outputs[0].data += node.prepared.data

    return Registration(prepare=prepare, invoke=invoke)


def half_of_a_dynamic_output() -> Registration:
    def prepare(context: Context, node: Node) -> None:
        context.set_dynamic(node.outputs[0])

    def invoke(context: Context, node: Node) -> None:
        x, y = node.inputs[0], node.outputs[0]
        context.resize_tensor(y, x.shape)
        np.multiply(x.data[::2], 2, out=y.data[::2])

    return Registration(prepare=prepare, invoke=invoke)


def a_product_with_three() -> Registration:
    def invoke(context: Context, node: Node) -> None:
        np.multiply(node.inputs[0].data, 3, out=node.outputs[0].data)

    return Registration(prepare=like_input, invoke=invoke)


def bytes_in_place_of_numbers() -> Registration:
    def invoke(context: Context, node: Node) -> None:
        np.multiply(node.inputs[0].data, np.float32(2), out=node.outputs[0].data)

    return Registration(prepare=like_input, invoke=invoke)


def an_input_that_is_taken_for_granted() -> Registration:
    def prepare(context: Context, node: Node) -> None:
        node.prepared = node.inputs[0].shape
        context.resize_tensor(node.outputs[0], node.prepared)

    return Registration(prepare=prepare, invoke=double)


def another_array_as_output() -> Registration:
    def invoke(context: Context, node: Node) -> None:
        node.outputs[0].data = node.inputs[0].data * np.float32(2)

    return Registration(prepare=like_input, invoke=invoke)


def a_result_in_the_input() -> Registration:
    def invoke(context: Context, node: Node) -> None:
        x = node.inputs[0].data
        np.multiply(x, 2, out=x)
        np.copyto(node.outputs[0].data, x)

    return Registration(prepare=like_input, invoke=invoke)


def a_constant_made_writeable() -> Registration:
    def invoke(context: Context, node: Node) -> None:
        x = node.inputs[0].data
        x.flags.writeable = True
        np.multiply(x, 2, out=x)
        np.copyto(node.outputs[0].data, x)
        np.multiply(x, 0.5, out=x)

    return Registration(prepare=like_input, invoke=invoke)


def a_size_shared_by_all_nodes() -> Registration:
    latest: dict[str, Node] = {}

    def prepare(context: Context, node: Node) -> None:
        like_input(context, node)
        latest["node"] = node

    def invoke(context: Context, node: Node) -> None:
        np.multiply(latest["node"].inputs[0].data, 2, out=node.outputs[0].data)

    return Registration(prepare=prepare, invoke=invoke)


def scratch_shared_by_all_threads() -> Registration:
    scratch = np.zeros(4, np.float32)

    def invoke(context: Context, node: Node) -> None:
        x = node.inputs[0].data
        if x.size != scratch.size:
            double(context, node)
            return
        np.copyto(scratch, x)
        time.sleep(0.001)  # another thread's turn
        np.multiply(scratch, 2, out=node.outputs[0].data)

    return Registration(prepare=like_input, invoke=invoke)


def a_diary_of_all_runs() -> Registration:
    diary = []

    def invoke(context: Context, node: Node) -> None:
        diary.append(float(node.inputs[0].data.sum()) if node.inputs[0].data.size else 0.0)
        double(context, node)

    return Registration(prepare=like_input, invoke=invoke)


def offer(context: Context, node: Node) -> None:
    like_input(context, node)
    node.in_place = node.inputs


def an_offer_that_is_not_kept() -> Registration:
    def invoke(context: Context, node: Node) -> None:
        x, y = node.inputs[0].data, node.outputs[0].data
        np.negative(x, y)
        np.subtract(x, y, y)

    return Registration(prepare=offer, invoke=invoke)


def test_an_offer_that_is_kept_passes() -> None:
    contract_of(resolver_of(Registration(prepare=offer, invoke=double))).test_an_input_that_it_offers_may_be_written_over()


BROKEN = [
    (a_state_that_prepare_makes, "test_every_init_has_its_free", "without prepare"),
    (states_kept_for_ever, "test_nothing_of_a_node_outlives_its_interpreter", "State of the node is still held"),
    (a_factor_that_grows_with_each_prepare, "test_preparing_twice_is_like_preparing_once", "prepared again"),
    (the_first_size_for_ever, "test_a_resized_graph_answers_as_a_fresh_one_of_that_size", "after a resize to another size"),
    (the_first_values_for_ever, "test_every_run_reads_the_present_values", "with other values"),
    (a_buffer_from_before, "test_no_buffer_of_an_earlier_preparation_is_used", "a buffer that it was given before"),
    (nothing_at_all, "test_every_element_of_every_output_is_written", "what lay in its outputs or its scratch"),
    (the_first_element_only, "test_every_element_of_every_output_is_written", "what lay in its outputs or its scratch"),
    (scratch_that_nobody_wrote, "test_every_element_of_every_output_is_written", "what lay in its outputs or its scratch"),
    (half_of_a_dynamic_output, "test_every_element_of_every_output_is_written", "what lay in its outputs or its scratch"),
    (a_product_with_three, "test_the_answers_are_those_of_the_reference", "for the inputs, the reference says otherwise"),
    (bytes_in_place_of_numbers, "test_types_that_it_cannot_compute_are_refused_before_it_runs", "fails when it runs"),
    (
        an_input_that_is_taken_for_granted,
        "test_operands_that_are_missing_are_refused_before_it_runs",
        "fails in place of refusing with `ensure`",
    ),
    (a_division_by_the_number_of_elements, "test_tensors_of_no_elements_are_no_trouble", "no elements it fails"),
    (
        another_array_as_output,
        "test_outputs_are_written_not_replaced",
        "replaces an output's array: .* in the place of the data of tensor 1",
    ),
    (a_result_in_the_input, "test_inputs_are_not_written", "changed the input 'input_0'"),
    (a_constant_made_writeable, "test_constants_are_not_written", "writeable"),
    (a_size_shared_by_all_nodes, "test_two_interpreters_know_nothing_of_each_other", "a second interpreter at work"),
    (scratch_shared_by_all_threads, "test_two_interpreters_know_nothing_of_each_other", "in another thread"),
    (an_offer_that_is_not_kept, "test_an_input_that_it_offers_may_be_written_over", "in the place of an input"),
    (a_diary_of_all_runs, "test_many_runs_take_no_more_memory_than_few", "bytes more"),
]


@pytest.mark.parametrize(("broken", "check", "words"), BROKEN, ids=[broken.__name__ for broken, _, _ in BROKEN])
def test_a_kernel_that_breaks_a_rule_is_found_out(broken: Callable[[], Registration], check: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        getattr(contract_of(resolver_of(broken())), check)()


def test_every_rule_but_that_of_versions_has_its_broken_kernel() -> None:
    assert {check for _, check, _ in BROKEN} == set(CHECKS) - {"test_a_version_that_it_does_not_know_is_refused"}


class AnyVersion(MutableOpResolver):
    def find_op(self, op: Any, version: int) -> Registration | None:
        return super().find_op(op, 1)


@pytest.mark.parametrize("said", [{"max_version": 1}, {}], ids=["registered for too many", "asked for none"])
def test_an_op_that_serves_versions_which_it_does_not_know_is_found_out(said: dict[str, Any]) -> None:
    resolver: MutableOpResolver = resolver_of(GOOD, newest=3)
    if not said:
        resolver = AnyVersion()
        resolver.add_custom("Double", GOOD)
    with pytest.raises(AssertionError, match="needs Double in version"):
        contract_of(resolver, **said).test_a_version_that_it_does_not_know_is_refused()


def test_free_is_called_once_for_what_init_made() -> None:
    calls: list[str] = []
    registration = Registration(
        init=lambda context, buffer: calls.append("init"),
        free=lambda context, state: calls.append("free"),
        prepare=like_input,
        invoke=double,
    )
    contract_of(resolver_of(registration)).test_every_init_has_its_free()
    assert calls.count("init") == calls.count("free") == 5


def test_an_op_may_say_that_it_refuses_tensors_of_no_elements() -> None:
    def prepare(context: Context, node: Node) -> None:
        ensure(node.inputs[0].size, "there is nothing to double.")
        like_input(context, node)

    picky = resolver_of(Registration(prepare=prepare, invoke=double))
    check = "test_tensors_of_no_elements_are_no_trouble"
    getattr(contract_of(picky, refuses_empty=True), check)()
    with pytest.raises(AssertionError, match="no elements it fails"):
        getattr(contract_of(picky), check)()
    with pytest.raises(AssertionError, match="said to refuse"):
        getattr(contract_of(resolver_of(GOOD), refuses_empty=True), check)()


def test_a_contract_that_names_too_few_inputs_says_so() -> None:
    contract = contract_of(resolver_of(GOOD), inputs=[np.zeros(4, np.float32)] * 2)
    with pytest.raises(AssertionError, match="has 1 inputs, the contract names 2"):
        contract.test_inputs_are_not_written()


def test_the_first_check_that_fails_is_named_and_the_longest_come_last() -> None:
    assert first_failure(contract_of(resolver_of(GOOD))) == ""
    wrong = a_product_with_three().invoke
    assert first_failure(contract_of(resolver_of(Registration(prepare=checked, invoke=wrong)))) == (
        "test_the_answers_are_those_of_the_reference"
    )
    ran: list[str] = []
    noted = {check: staticmethod(lambda check=check: ran.append(check)) for check in CHECKS}
    assert first_failure(contract_of(resolver_of(GOOD), **noted)) == ""
    assert sorted(ran) == CHECKS
    assert ran[-2:] == ["test_many_runs_take_no_more_memory_than_few", "test_two_interpreters_know_nothing_of_each_other"]


def test_the_examples_in_the_documentation_run() -> None:
    assert doctest.testmod(op_contract).failed == 0
