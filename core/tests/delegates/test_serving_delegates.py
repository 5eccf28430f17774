"""Delegates that exist for custom ops: interpreters apply them by themselves where no kernel serves such an op, and never otherwise."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from core.tests.chains import ADD_ONE, F32, Computes, add_chain, answer

from oplet import Delegate, DelegateRegistry, Interpreter, ModelBuilder, MutableOpResolver, Registration, SimpleDelegate, decline
from oplet.errors import DelegateError, DelegateLoadError, OpConflictError, UnresolvedOpError, UnservedNodeError
from oplet_testing import Spec, chain_graph, elementwise, graph_model, one_op_model
from oplet_tools.describing.doctor import examine
from oplet_tools.describing.inspect import inspect_model

NEGATES = """
    from oplet import SimpleDelegate, hookimpl
    from core.tests.delegates.test_serving_delegates import Negates

    CREATED = []

    def create(options):
        CREATED.append(options)
        return Negates(options)

    @hookimpl
    def register_delegates(registry):
        registry.add("{name}", create, serves=["Neg*", "Minus"])
    """


class Negates(SimpleDelegate):
    """Serves the ops that begin with Neg, but NegNothing, with any shapes."""

    name = "negates"

    def is_node_supported(self, context: Any, node: Any) -> bool | str:
        if node.op_name == "NegNothing":
            return "there is nothing to negate"
        return node.op_name.startswith(("Neg", "Minus"))

    def create_kernel(self, params: Any) -> Any:
        [_] = params.nodes
        return Computes(np.negative)


@pytest.fixture
def negating(site: Any) -> Any:
    """A site with the delegate."""
    site.add("oplet-neg", source=NEGATES.format(name="negates"))
    return site


def model(*ops: str) -> bytes:
    return graph_model(chain_graph(list(ops), Spec(F32, [3])))


def interpreter_of(site: Any, *ops: str, **arguments: Any) -> Interpreter:
    own = MutableOpResolver()
    own.add_custom("AddOne", ADD_ONE)
    own.add_custom("Double", elementwise(lambda x: x * F32(2)))
    arguments = {"op_resolver": own, "plugins": site.manager(), "experimental_disable_delegate_node_fusion": True, **arguments}
    return Interpreter(model_content=model(*ops), **arguments)


def created() -> list[Any]:
    """The options of the delegates that the plugin has made."""
    return list(sys.modules["oplet_neg"].CREATED) if "oplet_neg" in sys.modules else []


def applied(interpreter: Interpreter) -> list[str]:
    return [report.delegate for report in interpreter.delegation_reports() if report.applied]


def test_a_model_with_such_an_op_runs_without_naming_the_delegate(negating: Any) -> None:
    interpreter = interpreter_of(negating, "AddOne", "NegAll", "AddOne", "Minus")
    assert applied(interpreter) == []
    assert answer(interpreter) == [1, 2, 3]
    assert applied(interpreter) == ["negates"]
    assert [report.why for report in interpreter.explain() if report.distribution == "oplet-neg"] == [
        "claimed by the delegate"
    ] * 2


def test_a_model_whose_ops_all_have_kernels_never_meets_it(negating: Any) -> None:
    own = MutableOpResolver()
    own.add_custom("NegAll", elementwise(np.negative))
    manager = negating.manager()
    interpreter = Interpreter(model_content=model("NegAll"), op_resolver=own, plugins=manager)
    assert answer(interpreter) == [-1, -2, -3]
    assert applied(interpreter) == []
    assert created() == []


def test_it_is_made_once_and_applied_again_after_a_removal(negating: Any) -> None:
    interpreter = interpreter_of(negating, "NegAll", "AddOne")
    assert answer(interpreter) == [0, -1, -2]
    interpreter.remove_all_delegates()
    assert applied(interpreter) == []
    assert answer(interpreter) == [0, -1, -2]
    assert applied(interpreter) == ["negates"]
    assert created() == [{}]


def test_it_survives_resizes(negating: Any) -> None:
    interpreter = interpreter_of(negating, "NegAll", "AddOne")
    for values in ([1, 2, 3], [4, 5], [1, 2, 3]):
        assert answer(interpreter, values) == [1 - value for value in values]


def test_delegates_that_the_application_names_come_after_it_and_stay(negating: Any) -> None:
    class Doubles(Negates):
        name = "doubles"

        def is_node_supported(self, context: Any, node: Any) -> bool | str:
            return node.op_name == "Double"

        def create_kernel(self, params: Any) -> Any:
            return Computes(lambda x: x * F32(3))

    interpreter = interpreter_of(negating, "Double", "NegAll", experimental_delegates=[Doubles()])
    assert answer(interpreter) == [-3, -6, -9]
    assert applied(interpreter) == ["negates", "doubles"]


def test_one_that_the_application_named_is_not_applied_twice(negating: Any) -> None:
    manager = negating.manager()
    named = manager.registry().find("negates").create({"mine": 1})
    interpreter = Interpreter(model_content=model("NegAll"), plugins=manager, experimental_delegates=[named])
    assert answer(interpreter) == [-1, -2, -3]
    assert applied(interpreter) == ["negates"]
    assert created() == [{"mine": 1}]


def test_a_node_that_it_leaves_alone_is_refused_with_its_reason(negating: Any) -> None:
    interpreter = interpreter_of(negating, "NegAll", "NegNothing")
    for _ in range(2):
        with pytest.raises(
            UnresolvedOpError, match="NegNothing; the delegate negates leaves it alone: there is nothing to negate"
        ):
            interpreter.allocate_tensors()


def test_a_node_that_every_kernel_declines_goes_to_it(negating: Any) -> None:
    def declines(context: Any, node: Any) -> None:
        if node.inputs[0].shape == (2,):
            decline("two are too few")
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    own = MutableOpResolver()
    own.add_custom("NegAll", Registration(prepare=declines, invoke=elementwise(np.negative).invoke))
    interpreter = Interpreter(model_content=model("NegAll"), op_resolver=own, plugins=negating.manager())
    assert answer(interpreter, [1, 2, 3]) == [-1, -2, -3]
    assert applied(interpreter) == []
    assert answer(interpreter, [1, 2]) == [-1, -2]
    assert applied(interpreter) == ["negates"]
    alone = Interpreter(model_content=model("NegAll"), op_resolver=own, plugins=[])
    with pytest.raises(UnservedNodeError, match="two are too few"):
        answer(alone, [1, 2])


def test_ops_of_bodies_that_run_count_and_those_of_unused_subgraphs_do_not(negating: Any) -> None:
    builder = ModelBuilder()
    add_chain(builder, 1, op="AddOne")
    add_chain(builder, 1, name="unused", op="NegAll")
    own = MutableOpResolver()
    own.add_custom("AddOne", ADD_ONE)
    interpreter = Interpreter(model_content=builder.to_bytes(), op_resolver=own, plugins=negating.manager())
    assert answer(interpreter) == [2, 3, 4]
    assert applied(interpreter) == []


def test_two_delegates_for_one_op_are_a_conflict_that_a_preference_decides(negating: Any) -> None:
    negating.add("oplet-other", source=NEGATES.format(name="other"))
    with pytest.raises(OpConflictError, match="'negates' of oplet-neg 1.0 and 'other' of oplet-other 1.0 exist for NegAll"):
        interpreter_of(negating, "NegAll").allocate_tensors()
    for prefer in (["oplet-other"], {"NegAll": "oplet-other"}, {"Neg*": "oplet-other"}):
        interpreter = interpreter_of(negating, "NegAll", prefer=prefer)
        assert answer(interpreter) == [-1, -2, -3]
        assert applied(interpreter) == ["other"]


def test_one_that_cannot_be_made_says_why(site: Any) -> None:
    site.add(
        "oplet-neg", source=NEGATES.format(name="negates").replace("return Negates(options)", "raise RuntimeError('no licence')")
    )
    with pytest.raises(DelegateLoadError, match="oplet-neg 1.0 refuses the options {}: no licence"):
        interpreter_of(site, "NegAll").allocate_tensors()


def test_reports_name_its_package(negating: Any, tmp_path: Any) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(one_op_model("NegAll", [Spec(F32, [3])], [Spec(F32, [3])]))
    manager = negating.manager()
    [found] = examine(path, manager).operators
    assert (found.provider, found.fix) == ("oplet-neg 1.0 (delegate negates)", "")
    [op] = inspect_model(path, manager)["ops"]
    assert (op["distribution"], op["why"], op["advice"]) == ("oplet-neg", "the delegate negates exists for it", "")
    assert manager.advice("NegAll").startswith("The delegate negates of oplet-neg 1.0 serves it in interpreters")


def test_reports_ask_the_delegate_about_each_node(negating: Any, tmp_path: Any) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(model("NegAll", "NegNothing"))
    manager = negating.manager()
    found = {each.op: each for each in examine(path, manager).operators}
    assert found["NegAll"].is_served
    assert not found["NegNothing"].is_served
    assert (found["NegNothing"].provider, found["NegNothing"].package) == ("", "")
    assert found["NegNothing"].fix == "The delegate negates leaves it alone: there is nothing to negate."
    described = {op["op"]: op for op in inspect_model(path, manager)["ops"]}
    assert (described["NegAll"]["distribution"], described["NegNothing"]["distribution"]) == ("oplet-neg", "")
    assert described["NegNothing"]["advice"] == "the delegate negates leaves it alone: there is nothing to negate"


@pytest.mark.parametrize("serves", ["Flex*", [""], ["*"], [3]])
def test_what_is_no_list_of_names_is_refused(serves: Any) -> None:
    with pytest.raises(DelegateError, match="give a list of custom ops' names"):
        DelegateRegistry().add("mine", Delegate, serves=serves)


def test_an_op_that_only_a_named_delegate_serves_survives_resizes_too() -> None:
    interpreter = Interpreter(model_content=model("NegAll"), plugins=[], experimental_delegates=[Negates()])
    for values in ([1, 2, 3], [4, 5], [1, 2, 3]):
        assert answer(interpreter, values) == [-value for value in values]


def test_a_delegate_that_leaves_its_op_alone_after_a_resize_is_named_with_its_reason() -> None:
    class Picky(Negates):
        name = "picky"

        def is_node_supported(self, context: Any, node: Any) -> bool | str:
            return node.inputs[0].shape == (3,) or "it takes three values"

    interpreter = Interpreter(model_content=model("NegAll"), plugins=[], experimental_delegates=[Picky()])
    for _ in range(2):
        assert answer(interpreter, [1, 2, 3]) == [-1, -2, -3]
        with pytest.raises(UnservedNodeError, match=r"node 0 \(NegAll\) .* \(picky: it takes three values\)"):
            answer(interpreter, [1, 2])
