"""Composites by name: who serves them, who declines them, and what runs then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import Computes, answer, like_input
from flatbuffers import flexbuffers

from oplet import (
    Composite,
    Context,
    DelegateContext,
    DelegateParams,
    Interpreter,
    MutableOpResolver,
    Node,
    Registration,
    SimpleDelegate,
    TensorType,
    TypeLimit,
    decline,
)
from oplet.errors import CustomOptionsError, ModelError, OpConflictError, OpletError, PrepareError, ResolverError
from oplet.schema.options import IfOptions, MulOptions, WhileOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

X = Spec("float32", [2], signature=[-1])
#: What a decomposition computes: the square, so that it is seen when a kernel did not run.
SQUARE = Graph({"a": X, "y": X}, "a", "y", [Op("MUL", "a a", "y", MulOptions())], name="square")
A = np.array([3, -4], np.float32)


def composite(name: str | None = "my.twice", index: int = 1, version: int = 0, attributes: Any = None) -> Op:
    data = attributes if isinstance(attributes, bytes) else bytes(flexbuffers.Dumps(attributes or {}))
    options = StableHLOCompositeOptions(
        name=name,
        decomposition_subgraph_index=index,
        version=version,
        composite_attributes=np.frombuffer(data, np.uint8),
    )
    return Op("STABLEHLO_COMPOSITE", "a", "y", options)


def model(*ops: Op, **more: Any) -> bytes:
    return graph_model(Graph({"a": X, "y": X}, "a", "y", ops or [composite()]), SQUARE, **more)


def times(factor: float, check: Callable[[Node], None] = lambda node: None, **more: Any) -> Registration:
    def prepare(context: Context, node: Node) -> None:
        check(node)
        like_input(context, node)

    def invoke(context: Context, node: Node) -> None:
        np.multiply(node.inputs[0].data, factor, node.outputs[0].data)

    return Registration(prepare=prepare, invoke=invoke, **more)


def resolver(registration: Registration | str, name: str = "my.twice", *versions: int, **more: Any) -> MutableOpResolver:
    made = MutableOpResolver()
    made.add_composite(name, registration, *versions, **more)
    return made


def why(interpreter: Interpreter) -> str:
    return next(report.why for report in interpreter.explain() if report.op == "STABLEHLO_COMPOSITE")


# Resolvers ---------------------------------------------------------------------------------------------------


def test_a_composite_is_found_by_name_and_version_and_is_no_custom_op() -> None:
    served = resolver(times(2))
    found = served.find_composite("my.twice")
    assert found is not None
    assert (found.name, found.version, found.builtin_code.name) == ("my.twice", 0, "STABLEHLO_COMPOSITE")
    assert served.find_op(Composite("my.twice"), 0) is found
    assert served.find_composite("my.twice", 1) is None
    assert served.find_composite("my.thrice") is None
    assert served.find_op("my.twice", 0) is None
    assert served.find_op("my.twice", 1) is None
    assert served.versions(Composite("my.twice")) == [0]
    assert [entry.op for entry in served.entries()] == [Composite("my.twice")]


def test_composites_are_taken_over_with_everything_else() -> None:
    ours = MutableOpResolver()
    ours.add_all(resolver(times(2), "my.twice", 0, 3))
    assert ours.versions(Composite("my.twice")) == [0, 1, 2, 3]


def test_a_composites_kernel_is_imported_when_a_model_needs_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    served = resolver("kernel_of_twice:TWICE")
    with pytest.raises(ResolverError, match="The kernel of my.twice cannot be imported from 'kernel_of_twice:TWICE'"):
        Interpreter(model_content=model(), op_resolver=served)
    (tmp_path / "kernel_of_twice.py").write_text("from oplet import Registration\nTWICE = Registration(invoke=print)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert served.find_composite("my.twice") is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", times(2)), "is called ''"),
        ((7, times(2)), "is called 7"),
        (("x", times(2), -1), "versions -1 to -1; versions start at 0"),
        (("x", times(2), 2, 1), "versions 2 to 1"),
        (("x", None), "neither a Registration"),
        (("x", Registration()), "neither invoke nor bind"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: Any, words: str) -> None:
    with pytest.raises(ResolverError, match=words):
        MutableOpResolver().add_composite(*arguments)


# Kernels -----------------------------------------------------------------------------------------------------


def test_a_composite_that_is_served_runs_its_kernel_and_others_their_decomposition() -> None:
    assert answer(Interpreter(model_content=model()), A) == [9, 16]
    assert answer(Interpreter(model_content=model(), op_resolver=resolver(times(2))), A) == [6, -8]
    assert answer(Interpreter(model_content=model(composite("my.other")), op_resolver=resolver(times(2))), A) == [9, 16]


def test_each_composite_of_a_model_and_each_version_of_it_gets_its_own_kernel() -> None:
    ops = [composite(name, version=version)._replace(outputs=out) for name, version, out in (
        ("my.twice", 0, "y"), ("my.thrice", 0, "z"), ("my.twice", 1, "u"), ("my.twice", 2, "v"))]  # fmt: skip
    served = resolver(times(2))
    served.add_composite("my.thrice", times(3))
    served.add_composite("my.twice", times(4), 1)
    data = graph_model(Graph({"a": X, "y": X, "z": X, "u": X, "v": X}, "a", "y z u v", ops), SQUARE)
    interpreter = Interpreter(model_content=data, op_resolver=served)
    answer(interpreter, A)
    outputs = [interpreter.get_tensor(detail["index"]).tolist() for detail in interpreter.get_output_details()]
    assert outputs == [[6, -8], [9, -12], [12, -16], [9, 16]]


def test_a_kernel_reads_the_name_the_version_and_the_attributes() -> None:
    seen: list[Any] = []

    def check(node: Node) -> None:
        seen.append((node.composite_name, node.composite_version, node.composite_map()))

    attributes = {"epsilon": 0.5, "axes": [1, 2], "kind": "fast", "inner": {"on": True}}
    served = resolver(times(2, check), "my.twice", 3)
    answer(Interpreter(model_content=model(composite(version=3, attributes=attributes)), op_resolver=served), A)
    assert seen == [("my.twice", 3, attributes)]


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        (
            b"\xff" * 9,
            r"the 9 bytes of composite attributes are not a FlexBuffer \(the last byte says that the value is 255 bytes wide\)",
        ),
        (bytes(flexbuffers.Dumps([1, 2])), "the composite attributes are a list, not a map"),
    ],
)
def test_attributes_that_are_garbage_are_refused_in_a_sentence(attributes: bytes, words: str) -> None:
    served = resolver(times(2, lambda node: node.composite_map() and None))
    with pytest.raises(CustomOptionsError, match=words) as caught:
        answer(Interpreter(model_content=model(composite(attributes=attributes)), op_resolver=served), A)
    assert "Node number 0 (STABLEHLO_COMPOSITE my.twice) failed to prepare" in str(caught.value)


def test_a_kernel_needs_no_decomposition() -> None:
    assert answer(Interpreter(model_content=model(composite(index=-1)), op_resolver=resolver(times(2))), A) == [6, -8]


@pytest.mark.parametrize(
    ("op", "error", "words"),
    [
        (composite(None), PrepareError, "missing required option 'name'"),
        (composite(""), PrepareError, None),
        (composite(index=-1), PrepareError, "there is no subgraph -1 to call"),
        (composite(index=7), ModelError, "there is no subgraph 7 to call as decomposition"),
        (composite(index=0), ModelError, "call each other in a circle"),
    ],
)
def test_hostile_composites_are_refused(op: Op, error: type[OpletError], words: str | None) -> None:
    if words is None:
        assert answer(Interpreter(model_content=model(op), op_resolver=resolver(times(2))), A) == [9, 16]
        return
    refuse = times(2, lambda node: decline("not this one"))
    with pytest.raises(error, match=words):
        answer(Interpreter(model_content=model(op), op_resolver=resolver(refuse)), A)


# Declining ---------------------------------------------------------------------------------------------------


def only(length: int) -> Callable[[Node], None]:
    def check(node: Node) -> None:
        if node.inputs[0].shape[0] != length:
            decline(f"{node.inputs[0].shape[0]} values, where {length} are taken.")

    return check


def test_what_a_kernel_declines_its_decomposition_computes_and_explain_says_why() -> None:
    interpreter = Interpreter(model_content=model(), op_resolver=resolver(times(2, only(3))))
    assert why(interpreter) == "my.twice version 0: registered"
    assert answer(interpreter, A) == [9, 16]
    reports = [report for report in interpreter.explain() if report.subgraph == 0]
    assert [(report.distribution, report.composite) for report in reports] == [("oplet-builtin-ops", "my.twice")]
    assert why(interpreter).startswith("my.twice version 0: registered; its decomposition runs (only provider")
    assert why(interpreter).endswith("; application declined it: 2 values, where 3 are taken")


def test_explain_says_that_nobody_serves_a_composite() -> None:
    interpreter = Interpreter(model_content=model())
    assert why(interpreter).startswith("my.twice version 0: nobody registered it; its decomposition runs (only provider")


def test_the_providers_are_asked_one_after_the_other(site: Any) -> None:
    """The application's own first, then what is preferred, then plugins, then builtins, then the decomposition."""
    for name, factor, length, head in (("plain", 10, 4, ""), ("base", 100, 5, 'OPLET_TIER = "builtin"')):
        site.add(f"oplet-{name}", source=PLUGIN.format(factor=factor, length=length, head=head), name=name)
    manager = site.manager()
    from oplet.plugins.manager import default_manager

    builtin = next(e for e in default_manager()._found if e.name == "builtin_ops" or e.distribution == "oplet-builtin-ops")
    manager = type(manager)(entry_points=[*manager._entry_points, builtin.entry_point])
    interpreter = Interpreter(model_content=model(), op_resolver=resolver(times(2, only(3))), plugins=manager)
    assert answer(interpreter, [1, 2, 3]) == [2, 4, 6]
    assert answer(interpreter, [1, 2, 3, 4]) == [10, 20, 30, 40]
    assert answer(interpreter, [1, 2, 3, 4, 5]) == [100, 200, 300, 400, 500]
    assert why(interpreter) == (
        "my.twice version 0: next after application; application declined it: 5 values, where 3 are taken; oplet-plain 1.0 declined it: not 5"
    )
    assert answer(interpreter, [1, 2]) == [1, 4]
    assert why(interpreter).endswith("oplet-plain 1.0 declined it: not 2; oplet-base 1.0 declined it: not 2")
    assert answer(interpreter, [1, 2, 3]) == [2, 4, 6]
    assert why(interpreter) == "my.twice version 0: registered"


PLUGIN = """
    import numpy as np
    from oplet import Registration, decline, hookimpl
    {head}
    def prepare(context, node):
        if node.inputs[0].shape != ({length},):
            decline("not %d." % node.inputs[0].shape[0])
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(context, node):
        np.multiply(node.inputs[0].data, {factor}, node.outputs[0].data)

    @hookimpl
    def register_ops(resolver):
        resolver.add_composite("my.twice", Registration(prepare=prepare, invoke=invoke))
    """


def rivals(site: Any) -> None:
    for name in ("fast", "slow"):
        site.add(f"oplet-{name}", source=PLUGIN.format(factor=2, length=4, head=""), name=name)
    site.add("oplet-base", source=PLUGIN.format(factor=2, length=4, head='OPLET_TIER = "builtin"'), name="base")


def test_two_packages_that_serve_a_composite_are_an_error_until_one_is_chosen(site: Any) -> None:
    rivals(site)
    op = Composite("my.twice")
    with pytest.raises(
        OpConflictError, match=r"my\.twice version 0 is claimed by oplet-fast 1\.0 and oplet-slow 1\.0; choose with"
    ):
        site.manager().resolver().find_op(op, 0)
    chosen = site.manager().resolver(prefer={"my.twice": "slow"})
    assert str(chosen.find_composite("my.twice").provenance) == "oplet-slow 1.0"
    assert chosen.why(op, 0) == "preferred over oplet-base 1.0, oplet-fast 1.0"
    assert [str(found.provenance) for found in chosen.candidates(op, 0)] == ["oplet-slow 1.0", "oplet-fast 1.0", "oplet-base 1.0"]
    blocked = site.manager(block=["fast"]).resolver()
    assert [str(found.provenance) for found in blocked.candidates(op, 0)] == ["oplet-slow 1.0", "oplet-base 1.0"]
    assert [(info.name, info.ops) for info in site.manager().plugins()] == [
        (name, (("my.twice", 0, 0),)) for name in ("base", "fast", "slow")
    ]


def test_a_conflict_among_those_who_are_next_is_told_when_they_are_asked(site: Any) -> None:
    rivals(site)
    site.add("oplet-mine", source=PLUGIN.format(factor=2, length=9, head=""), name="mine")
    found = site.manager().resolver(prefer=["mine"]).candidates(Composite("my.twice"), 0)
    assert str(next(found).provenance) == "oplet-mine 1.0"
    with pytest.raises(OpConflictError, match=r"claimed by oplet-fast 1\.0 and oplet-slow 1\.0"):
        next(found)


def test_a_limit_of_types_declines_other_types() -> None:
    served = resolver(times(2), limit=TypeLimit((TensorType.INT8,)))
    interpreter = Interpreter(model_content=model(), op_resolver=served)
    assert answer(interpreter, A) == [9, 16]
    assert "application declined it: my.twice of application was built for INT8 only, and tensor 0 'a'" in why(interpreter)


def test_when_nobody_is_left_every_reason_is_told() -> None:
    served = resolver(times(2, only(3)))
    served.add_builtin("MUL", times(1))
    interpreter = Interpreter(model_content=model(), op_resolver=served, plugins=[])
    with pytest.raises(
        PrepareError, match="^nobody serves the node: application declines it: 2 values, where 3 are taken. Node number 0"
    ):
        answer(interpreter, A)
    served.add_builtin("STABLEHLO_COMPOSITE", times(5, only(7)))
    interpreter = Interpreter(model_content=model(), op_resolver=served, plugins=[])
    words = (
        "nobody serves the node: application declines it: 2 values, where 3 are taken; application declines it: 2 values, where 7"
    )
    with pytest.raises(PrepareError, match=words):
        answer(interpreter, A)


def test_a_node_goes_to_and_fro_between_its_kernels_and_each_keeps_its_own_state() -> None:
    calls: list[str] = []
    made: list[str] = []

    def keeping(label: str, factor: float, length: int) -> Registration:
        def init(context: Context, buffer: Any) -> str:
            calls.append(f"init {label}")
            assert isinstance(buffer, StableHLOCompositeOptions)
            return label

        def free(context: Context, user_data: Any) -> None:
            calls.append(f"free {user_data}")

        def check(node: Node) -> None:
            assert node.user_data == label
            assert node.prepared is None
            if node.inputs[0].shape != (length,):
                decline("not now")

        inner = times(factor, check)

        def invoke(context: Context, node: Node) -> None:
            assert node.cached("weights", (), lambda: (made.append(label), label)[1]) == label
            inner.invoke(context, node)  # type: ignore[misc]

        return Registration(init=init, free=free, prepare=inner.prepare, invoke=invoke)

    first, second = resolver(keeping("first", 2, 2)), resolver(keeping("second", 3, 3))
    from oplet.ops.serving.resolver import ChainOpResolver

    interpreter = Interpreter(model_content=model(), op_resolver=ChainOpResolver([first, second]))
    assert calls == ["init first"]
    for _ in range(2):
        assert answer(interpreter, [1, 2]) == [2, 4]
        assert answer(interpreter, [1, 2, 3]) == [3, 6, 9]
        assert answer(interpreter, [1, 2, 3, 4]) == [1, 4, 9, 16]
    assert made == ["first", "second"]
    assert calls == ["init first", "init second"]
    interpreter.close()
    assert sorted(calls) == ["free first", "free second", "init first", "init second"]


def test_a_kernel_whose_init_fails_after_another_declined_is_named_and_what_was_initialized_is_freed() -> None:
    calls: list[str] = []

    def fail(context: Context, buffer: Any) -> None:
        raise ValueError("no room")

    first = times(2, only(3), init=lambda context, buffer: "state", free=lambda context, state: calls.append(state))
    second = times(2, init=fail, free=lambda context, state: calls.append("wrong"))
    from oplet.ops.serving.resolver import ChainOpResolver

    interpreter = Interpreter(model_content=model(), op_resolver=ChainOpResolver([resolver(first), resolver(second)]))
    with pytest.raises(PrepareError, match="ValueError: no room. .* failed to initialize"):
        answer(interpreter, A)
    interpreter.close()
    assert calls == ["state"]


def test_a_builtin_and_a_custom_op_are_declined_as_composites_are() -> None:
    served = MutableOpResolver()
    served.add_builtin("MUL", times(5, only(3)))
    interpreter = Interpreter(model_content=graph_model(SQUARE), op_resolver=served)
    assert answer(interpreter, A) == [9, 16]
    (report,) = interpreter.explain()
    assert report.distribution != ""
    assert "; application declined it: 2 values, where 3 are taken" in report.why
    assert answer(interpreter, [1, 2, 3]) == [5, 10, 15]


@pytest.mark.parametrize("length", [2, 3])
def test_composites_in_the_bodies_of_if_and_while(length: int) -> None:
    scalar, bound = Spec("bool", []), np.array(2, np.int32)
    i = Spec("int32", [])
    branch = Graph({"a": X, "y": X}, "a", "y", [composite(index=2)])
    body = Graph(
        {"i": i, "a": X, "one": np.array(1, np.int32), "j": i, "y": X},
        "i a",
        "j y",
        [Op("ADD", "i one", "j"), composite(index=2)],
    )
    condition = Graph({"i": i, "a": X, "n": bound, "more": scalar}, "i a", "more", [Op("LESS", "i n", "more")])
    main = Graph(
        {"a": X, "c": np.array(True), "i": np.array(0, np.int32), "y": X, "j": i, "z": X},
        "a",
        "y z",
        [
            Op("IF", "c a", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=2)),
            Op("WHILE", "i a", "j z", WhileOptions(cond_subgraph_index=3, body_subgraph_index=4)),
        ],
    )
    data = graph_model(main, branch, SQUARE, condition, body)
    interpreter = Interpreter(model_content=data, op_resolver=resolver(times(3, only(3))))
    value = np.arange(1, length + 1, dtype=np.float32)
    for _ in range(2):
        answer(interpreter, np.ones(5 - length))
        expected = [(3 * value).tolist(), (9 * value).tolist()] if length == 3 else [(value**2).tolist(), (value**4).tolist()]
        answer(interpreter, value)
        assert [interpreter.get_tensor(d["index"]).tolist() for d in interpreter.get_output_details()] == expected


def test_each_signature_has_its_own_choice() -> None:
    y = Spec("float32", [3])
    short = Graph({"a": X, "y": X}, "a", "y", [composite(index=2)])
    long = Graph({"a": y, "y": y}, "a", "y", [composite(index=2)])
    data = graph_model(short, long, SQUARE, signatures={"short": 0, "long": 1})
    interpreter = Interpreter(model_content=data, op_resolver=resolver(times(2, only(3))))
    for _ in range(2):
        assert interpreter.get_signature_runner("short")(a=A)["y"].tolist() == [9, 16]
        assert interpreter.get_signature_runner("long")(a=np.ones(3, np.float32))["y"].tolist() == [2, 2, 2]


class Claims(SimpleDelegate):
    """Claims composites, and everything in whatever else it is asked about."""

    name = "claims"

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool:
        asked.append((context.subgraph_index, node.op_name))
        return node.op_name == "STABLEHLO_COMPOSITE"

    def create_kernel(self, params: DelegateParams) -> Any:
        return Computes(lambda x: np.full_like(x, -1))


asked: list[tuple[int, str]] = []


def test_a_delegate_that_claims_a_composite_goes_before_its_kernel() -> None:
    interpreter = Interpreter(model_content=model(), op_resolver=resolver(times(2)), experimental_delegates=[Claims()])
    assert answer(interpreter, A) == [-1, -1]


def test_a_delegate_is_asked_about_a_decomposition_only_if_it_may_run() -> None:
    class Never(Claims):
        def is_node_supported(self, context: DelegateContext, node: Node) -> bool:
            super().is_node_supported(context, node)
            return False

    for check, inlined in ((lambda node: None, False), (only(3), True)):
        asked.clear()
        served = resolver(times(2, check))
        interpreter = Interpreter(model_content=model(), op_resolver=served, experimental_delegates=[Never()])
        answer(interpreter, A)
        assert ((0, "MUL") in asked) is inlined
    asked.clear()
    answer(Interpreter(model_content=model(), experimental_delegates=[Never()]), A)
    assert set(asked) == {(0, "STABLEHLO_COMPOSITE"), (0, "MUL")}
