"""Families of custom ops: a prefix that one registration serves, and how it stands beside names, other prefixes and other packages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, answer

from oplet import Interpreter, MutableOpResolver, Registration
from oplet.errors import OpConflictError, PrepareError, ResolverError
from oplet.ops.serving.provenance import CustomPrefix
from oplet_testing import Spec, chain_graph, elementwise, graph_model

BY_NAME = """
    from oplet import Registration, hookimpl
    {head}
    @hookimpl
    def register_ops(resolver):
        resolver.add_custom("{op}", Registration(invoke=print))
    """
BY_PREFIX = """
    from oplet import Registration, hookimpl
    {head}
    @hookimpl
    def register_ops(resolver):
        resolver.add_custom_prefix("{op}", Registration(invoke=print))
    """


def add(site: Any, distribution: str, source: str, op: str, head: str = "") -> None:
    site.add(distribution, source=source.format(op=op, head=head))


def providers(resolver: Any, op: str) -> list[str]:
    return [str(entry.provenance) for entry in resolver.in_order(op, 1)]


def test_every_op_whose_name_begins_so_is_served_under_its_own_name() -> None:
    resolver = MutableOpResolver()
    resolver.add_custom_prefix("Flex", Registration(invoke=print), 1, 2)
    found = resolver.find_op("FlexErf", 2)
    assert found is not None
    assert (found.name, found.version) == ("FlexErf", 2)
    assert resolver.find_op("FlexErf", 3) is None
    assert resolver.find_op("Fle", 1) is None
    assert resolver.versions("FlexErf") == [1, 2]
    assert [(entry.op, entry.family) for entry in resolver.entries("FlexErf")] == [("FlexErf", CustomPrefix("Flex"))]
    assert [str(entry.op) for entry in resolver.entries()] == ["Flex*"]


def test_a_name_goes_before_its_families_and_a_longer_prefix_before_a_shorter_one() -> None:
    resolver = MutableOpResolver()
    whole, longer, single, behind = (Registration(invoke=lambda context, node: None) for _ in range(4))
    resolver.add_custom_prefix("Flex", whole)
    resolver.add_custom_prefix("FlexTensor", longer)
    resolver.add_custom("FlexTensorListStack", single)
    resolver.add_custom("FlexTensorListStack", behind, fallback=True)
    order = [entry.target for entry in resolver.in_order("FlexTensorListStack", 1)]
    assert order == [single, behind, longer, whole]
    assert [r.invoke for r in resolver.candidates("FlexTensorListStack", 1)] == [r.invoke for r in order]
    assert [entry.target for entry in resolver.in_order("FlexTensorArray", 1)] == [longer, whole]


def test_a_family_added_after_a_look_up_is_found() -> None:
    resolver = MutableOpResolver()
    resolver.add_custom_prefix("F", Registration(invoke=print))
    assert resolver.find_op("FlexErf", 1) is not None
    resolver.add_custom_prefix("Flex", Registration(invoke=repr))
    found = resolver.find_op("FlexErf", 1)
    assert found is not None
    assert found.invoke is repr


@pytest.mark.parametrize("prefix", ["", None, 3])
def test_a_prefix_that_is_none_is_refused(prefix: Any) -> None:
    with pytest.raises(ResolverError, match="give what the names of its ops begin with"):
        MutableOpResolver().add_custom_prefix(prefix, Registration(invoke=print))


def test_a_name_goes_before_a_family_of_another_package_whatever_the_tiers(site: Any) -> None:
    add(site, "oplet-family", BY_PREFIX, "Flex")
    add(site, "oplet-single", BY_NAME, "FlexErf", head='OPLET_TIER = "builtin"')
    resolver = site.manager().resolver()
    assert providers(resolver, "FlexErf") == ["oplet-single 1.0", "oplet-family 1.0"]
    assert providers(resolver, "FlexOther") == ["oplet-family 1.0"]
    assert resolver.why("FlexErf", 1) == "overrides oplet-family 1.0"
    assert resolver.why("FlexOther", 1) == "only provider, of the family Flex*"
    assert [info.ops for info in site.manager().plugins()] == [(("Flex*", 1, 1),), (("FlexErf", 1, 1),)]


def test_two_packages_with_the_same_prefix_are_a_conflict_that_a_preference_decides(site: Any) -> None:
    add(site, "oplet-one", BY_PREFIX, "Flex")
    add(site, "oplet-two", BY_PREFIX, "Flex")
    with pytest.raises(OpConflictError, match=r"FlexErf version 1 is claimed by oplet-one 1.0 and oplet-two 1.0"):
        site.manager().resolver().find_op("FlexErf", 1)
    for prefer in (["oplet-two"], {"FlexErf": "oplet-two"}, {"Flex*": "oplet-two"}):
        assert providers(site.manager().resolver(prefer), "FlexErf")[0] == "oplet-two 1.0"


def test_a_preference_for_one_op_of_a_family_is_not_called_useless(site: Any, caplog: pytest.LogCaptureFixture) -> None:
    add(site, "oplet-one", BY_PREFIX, "Flex")
    site.manager().resolver({"FlexErf": "oplet-one"})
    assert not caplog.records
    site.manager().resolver({"Erf": "oplet-one"})
    assert "which it does not serve" in caplog.text


def test_where_a_single_kernel_declines_its_family_s_kernel_runs_the_node() -> None:
    def declines(context: Any, node: Any) -> None:
        from oplet import decline

        decline("too small")

    resolver = MutableOpResolver()
    resolver.add_custom("FlexErf", Registration(prepare=declines, invoke=print))
    resolver.add_custom_prefix("Flex", elementwise(np.negative))
    model = graph_model(chain_graph(["FlexErf"], Spec(F32, [3])))
    interpreter = Interpreter(model_content=model, op_resolver=resolver, plugins=[])
    assert answer(interpreter) == [-1, -2, -3]
    [report] = interpreter.explain()
    assert "declined it: too small" in report.why


def test_a_node_that_the_first_package_declines_is_not_told_the_reason_of_the_first(site: Any) -> None:
    site.add(
        "oplet-base",
        source=BY_PREFIX.format(op="Flex", head='OPLET_TIER = "builtin"')
        .replace("invoke=print", "prepare=PREPARE, invoke=print")
        .replace("@hookimpl", "PREPARE = lambda context, node: context.resize_tensor(node.outputs[0], (3,))\n    @hookimpl"),
    )
    declines = "\n    from oplet import decline\n    def PREPARE(context, node):\n        if node.inputs[0].shape[0] != 4:\n            decline('not 4')\n        context.resize_tensor(node.outputs[0], (4,))\n"
    site.add(
        "oplet-four", source=BY_NAME.format(op="FlexErf", head=declines).replace("invoke=print", "prepare=PREPARE, invoke=print")
    )
    for length, why in ((4, "overrides oplet-base 1.0"), (3, "next after oplet-four 1.0; oplet-four 1.0 declined it: not 4")):
        model = graph_model(chain_graph(["FlexErf"], Spec(F32, [length])))
        interpreter = Interpreter(model_content=model, plugins=site.manager())
        interpreter.allocate_tensors()
        [report] = interpreter.explain()
        assert (report.distribution, report.why) == ("oplet-base" if length == 3 else "oplet-four", why)


def test_a_family_whose_kernel_refuses_names_the_op_of_the_node() -> None:
    def refuses(context: Any, node: Any) -> None:
        from oplet import ensure

        ensure(False, f"no kernel for {node.op_name}.")

    resolver = MutableOpResolver()
    resolver.add_custom_prefix("Flex", Registration(prepare=refuses, invoke=print))
    model = graph_model(chain_graph(["FlexErf"], Spec(F32, [3])))
    with pytest.raises(PrepareError, match=r"no kernel for FlexErf. Node number 0 \(FlexErf\)"):
        Interpreter(model_content=model, op_resolver=resolver, plugins=[]).allocate_tensors()
