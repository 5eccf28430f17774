"""Plugins whose kernels break the contract: each is named, and nothing else is damaged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Context, Interpreter, MutableOpResolver, Node, PluginManager, Registration
from oplet.errors import OpletError, ResolverError
from oplet.ops.serving.provenance import Provenance
from oplet_testing import elementwise, invoke
from oplet_testing.distributions import fake_distribution, installed
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec, one_op_model

from .harness import raising, refusal, rows

X = Spec("float32", [2])
#: x -> Bad -> a -> Good -> b, and x -> Good -> c
MODEL = graph_model(
    Graph(dict.fromkeys("xabc", X), "x", "b c", [Op("Bad", "x", "a"), Op("Good", "a", "b"), Op("Good", "x", "c")])
)
ONES = np.ones(2, np.float32)


GOOD = elementwise(lambda x, *others: x * 2)


def resolver_of(bad: Registration) -> MutableOpResolver:
    resolver = MutableOpResolver(Provenance("bad", "oplet-bad", "0.9", "oplet_bad"))
    resolver.add_custom("Bad", bad)
    other = MutableOpResolver()
    other.add_custom("Good", GOOD)
    resolver.add_all(other)
    return resolver


def run(interpreter: Interpreter) -> list[list[float]]:
    return [result.tolist() for result in invoke(interpreter, ONES)]


def invoking(action: Callable[[Context, Node], object]) -> Registration:
    def invoke(context: Context, node: Node) -> None:
        GOOD.invoke(context, node)
        action(context, node)

    return Registration(prepare=GOOD.prepare, invoke=invoke)


def preparing(action: Callable[[Context, Node], object]) -> Registration:
    def prepare(context: Context, node: Node) -> None:
        GOOD.prepare(context, node)
        action(context, node)

    return Registration(prepare=prepare, invoke=GOOD.invoke)


def rebind(value: Any) -> Callable[[Context, Node], None]:
    def action(context: Context, node: Node) -> None:
        node.outputs[0].data = value

    return action


def recurse(context: Context, node: Node) -> None:
    recurse(context, node)


class Panic(BaseException):
    """As Rust's panics reach Python."""


class Stop(KeyboardInterrupt):
    """An interruption that no user asked for."""


NAMED = r"Node number 0 \(Bad\)"
KERNEL = rf"{NAMED} failed to \w+ in the kernel of oplet-bad 0.9"
BROKEN = {
    "raises in init": (Registration(init=raising(KeyError("x")), invoke=GOOD.invoke), f"KeyError: 'x'.*{KERNEL}"),
    "exits in init": (Registration(init=raising(SystemExit(3)), invoke=GOOD.invoke), f"SystemExit: 3.*{KERNEL}"),
    "raises in prepare": (preparing(raising(IndexError("7"))), f"IndexError: 7.*{KERNEL}"),
    "exits in prepare": (preparing(raising(SystemExit())), f"SystemExit.*{KERNEL}"),
    "raises in bind": (Registration(prepare=GOOD.prepare, bind=raising(ValueError("no"))), f"ValueError: no.*{KERNEL}"),
    "binds nothing": (Registration(prepare=GOOD.prepare, bind=lambda context, node: None), f"bind returns None.*{KERNEL}"),  # type: ignore[arg-type, return-value]
    "raises in invoke": (invoking(raising(ZeroDivisionError("z"))), f"ZeroDivisionError: z.*{KERNEL}"),
    "panics in init": (Registration(init=raising(Panic("lib.rs")), invoke=GOOD.invoke), f"Panic: lib.rs.*{KERNEL}"),
    "panics in prepare": (preparing(raising(Panic("lib.rs"))), f"Panic: lib.rs.*{KERNEL}"),
    "panics in bind": (Registration(prepare=GOOD.prepare, bind=raising(Panic("lib.rs"))), f"Panic: lib.rs.*{KERNEL}"),
    "panics in invoke": (invoking(raising(Panic("lib.rs"))), f"Panic: lib.rs.*{KERNEL}"),
    "interrupts itself": (invoking(raising(Stop("now"))), f"Stop: now.*{KERNEL}"),
    "closes generators": (invoking(raising(GeneratorExit())), f"GeneratorExit.*{KERNEL}"),
    "ends the tests": (invoking(lambda c, n: pytest.exit("enough")), f"Exit: enough.*{KERNEL}"),
    "exits in invoke": (invoking(raising(SystemExit(1))), f"SystemExit: 1.*{KERNEL}"),
    "has no memory": (invoking(raising(MemoryError())), f"not enough memory.*{KERNEL}"),
    "takes too few arguments": (Registration(prepare=GOOD.prepare, invoke=lambda context: None), f"TypeError.*{KERNEL}"),  # type: ignore[arg-type, misc]
    "prepares too few arguments": (Registration(prepare=lambda: None, invoke=GOOD.invoke), f"TypeError.*{KERNEL}"),  # type: ignore[arg-type, misc]
    "returns another shape": (invoking(rebind(np.ones(5, np.float32))), rf"float32 \[5\] in the place .*tensor 1.*{KERNEL}"),
    "returns another type": (invoking(rebind(np.ones(2, np.float64))), f"float64 .* in the place .*tensor 1.*{KERNEL}"),
    "returns a list": (invoking(rebind([1, 2])), f"list .* in the place of the data of tensor 1.*{KERNEL}"),
    "replaces the output": (invoking(rebind(np.ones(2, np.float32))), f"in the place of the data of tensor 1.*{KERNEL}"),
    "writes beyond the output": (invoking(lambda c, n: n.outputs[0].data.__setitem__(7, 1)), f"IndexError.*{KERNEL}"),
    "loses an input": (preparing(lambda c, n: n.inputs.clear()), f"changes the list of its node's tensors.*{KERNEL}"),
    "adds an output": (preparing(lambda c, n: n.outputs.append(n.inputs[0])), f"changes the list .*{KERNEL}"),
    "asks for a negative size": (preparing(lambda c, n: c.resize_tensor(n.outputs[0], [-3])), rf"\[-3\].*{NAMED}"),
    "sets a negative size": (preparing(lambda c, n: setattr(n.outputs[0], "shape", (-3,))), rf"\[-3\].*{NAMED}"),
    "sets 100 dimensions": (preparing(lambda c, n: setattr(n.outputs[0], "shape", (1,) * 100)), f"100 dimensions.*{NAMED}"),
    "sets a shape of words": (preparing(lambda c, n: setattr(n.outputs[0], "shape", ("a",))), f"ValueError.*{KERNEL}"),
    "asks for too much": (preparing(lambda c, n: c.add_temporary(n, (2**20, 2**20))), r"\d{13} bytes"),
    "has a temporary that is none": (preparing(lambda c, n: n.temporaries.append(3)), f"3 among its temporaries.*{KERNEL}"),  # type: ignore[arg-type, func-returns-value]
    "calls itself for ever": (invoking(recurse), f"RecursionError.*{KERNEL}"),
    "resizes the input": (invoking(lambda c, n: c.resize_tensor(n.inputs[0], [-1])), rf"\[-1\].*{NAMED}"),
}


@rows(56)
@pytest.mark.parametrize("kind", BROKEN)
def test_a_kernel_that_breaks_the_contract_is_named_and_damages_nothing(kind: str) -> None:
    registration, words = BROKEN[kind]

    def use() -> Any:
        with_it = Interpreter(model_content=MODEL, op_resolver=resolver_of(registration))
        try:
            return run(with_it)
        finally:
            for _ in range(2):  # it stays an interpreter: the same call gives an answer again, and it closes
                with pytest.raises(OpletError):
                    run(with_it)
            with_it.close()

    refusal(use, words)
    assert run(Interpreter(model_content=MODEL, op_resolver=resolver_of(GOOD))) == [[4, 4], [2, 2]]


@rows(56)
@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(1), Panic("lib.rs"), Stop()])
def test_a_kernel_that_fails_to_free_is_named_and_all_others_are_freed(error: BaseException) -> None:
    freed = []
    good = Registration(
        init=lambda context, buffer: 1, free=lambda context, data: freed.append(data), prepare=GOOD.prepare, invoke=GOOD.invoke
    )
    resolver = resolver_of(
        Registration(init=lambda context, buffer: 2, free=raising(error), prepare=GOOD.prepare, invoke=GOOD.invoke)
    )
    resolver.add_custom("Good", good)
    interpreter = Interpreter(model_content=MODEL, op_resolver=resolver)
    assert run(interpreter) == [[4, 4], [2, 2]]
    refusal(interpreter.close, f"{type(error).__name__}.*{KERNEL}")
    assert freed == [1, 1]
    interpreter.close()


@rows(56)
@pytest.mark.parametrize("method", ["prepare", "invoke"])
def test_an_interruption_by_the_user_passes_and_the_interpreter_goes_on(method: str) -> None:
    due = [KeyboardInterrupt()]

    def interrupted(context: Context, node: Node) -> None:
        if due:
            raise due.pop()

    interpreter = Interpreter(
        model_content=MODEL, op_resolver=resolver_of(preparing(interrupted) if method == "prepare" else invoking(interrupted))
    )
    with pytest.raises(KeyboardInterrupt):
        run(interpreter)
    assert run(interpreter) == [[4, 4], [2, 2]]


@rows(56)
def test_a_constant_cannot_be_written() -> None:
    resolver = resolver_of(invoking(lambda context, node: node.inputs[1].data.fill(9)))
    model = one_op_model("Bad", [X, ONES], [X])
    refusal(lambda: run(Interpreter(model_content=model, op_resolver=resolver)), f"read-only.*{KERNEL}")


@rows(56)
def test_a_written_input_is_found_by_the_checking_mode() -> None:
    resolver = resolver_of(invoking(lambda context, node: node.inputs[0].data.fill(9)))
    assert run(Interpreter(model_content=MODEL, op_resolver=resolver)) == [[4, 4], [18, 18]]  # the price of not looking
    checked = Interpreter(model_content=MODEL, op_resolver=resolver, checks=True)
    refusal(lambda: run(checked), f"changes its input tensor 0 'x' .*{KERNEL}")
    assert run(Interpreter(model_content=MODEL, op_resolver=resolver_of(GOOD), checks=True)) == [[4, 4], [2, 2]]


@rows(56)
@pytest.mark.parametrize("action", [lambda c, n: n.outputs.pop(), lambda c, n: setattr(n.outputs[0], "shape", (9,))])
def test_other_changes_while_running_are_found_by_the_checking_mode(action: Callable[[Context, Node], object]) -> None:
    checked = Interpreter(model_content=MODEL, op_resolver=resolver_of(invoking(action)), checks=True)
    refusal(lambda: run(checked), f"(changes|leaves) .*{KERNEL}")


@rows(56)
def test_a_view_that_a_kernel_keeps_harms_nobody() -> None:
    kept: list[Any] = []
    interpreter = Interpreter(
        model_content=MODEL, op_resolver=resolver_of(invoking(lambda context, node: kept.append(node.outputs[0].data)))
    )
    assert run(interpreter) == run(interpreter) == [[4, 4], [2, 2]]
    interpreter.close()
    kept[0].fill(7)
    assert run(Interpreter(model_content=MODEL, op_resolver=resolver_of(GOOD))) == [[4, 4], [2, 2]]


@rows(56)
def test_a_kernel_that_runs_its_own_interpreter_is_refused() -> None:
    own: list[Interpreter] = []
    interpreter = Interpreter(model_content=MODEL, op_resolver=resolver_of(invoking(lambda context, node: own[0].invoke())))
    own.append(interpreter)
    refusal(lambda: run(interpreter), rf"call each other in a circle.*{NAMED}")


NONSENSE: dict[str, tuple[Callable[[MutableOpResolver], object], str]] = {
    "null": (lambda r: r.add_custom("A", None), "neither a Registration"),  # type: ignore[arg-type]
    "nothing to run": (lambda r: r.add_custom("A", Registration()), "neither invoke nor bind"),
    "a number as invoke": (lambda r: r.add_custom("A", Registration(invoke=42)), "42 as invoke"),  # type: ignore[arg-type]
    "text as prepare": (lambda r: r.add_custom("A", Registration(prepare="p", invoke=GOOD.invoke)), "'p' as prepare"),  # type: ignore[arg-type]
    "versions 5 to 2": (lambda r: r.add_custom("A", GOOD, 5, 2), "versions 5 to 2"),
    "version 0": (lambda r: r.add_custom("A", GOOD, 0), "versions 0 to 0"),
    "all versions": (lambda r: r.add_custom("A", GOOD, 1, 2**62), "numbers from 1 to"),
    "a version in words": (lambda r: r.add_custom("A", GOOD, "1"), "'1' to '1'"),  # type: ignore[arg-type]
    "no name": (lambda r: r.add_custom("", GOOD), "empty name"),
    "a number as name": (lambda r: r.add_custom(7, GOOD), "7, which is not a name"),  # type: ignore[arg-type]
    "no such builtin": (lambda r: r.add_builtin("KONV", GOOD), "no built-in operator called 'KONV'"),
    "no such code": (lambda r: r.add_builtin(5000, GOOD), "out of range: 5000"),
}


@rows(56)
@pytest.mark.parametrize("kind", NONSENSE)
def test_a_registration_that_makes_no_sense_is_refused(kind: str) -> None:
    register, words = NONSENSE[kind]
    assert isinstance(refusal(lambda: register(MutableOpResolver()), words), ResolverError)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PluginManager]]:
    """Installs plugins of one module each, by distribution, and gives their manager."""
    for variable in ("OPLET_PLUGINS", "OPLET_DISABLE_PLUGINS", "OPLET_PREFER"):
        monkeypatch.delenv(variable, raising=False)
    with ExitStack() as stack:

        def install(**sources: str) -> PluginManager:
            for name, body in sources.items():
                source = f"from oplet import Registration, hookimpl\n{body}"
                fake_distribution(tmp_path / "site", f"oplet-{name}", "0.9", {name: f"oplet_{name}"}, {f"oplet_{name}": source})
            return PluginManager(entry_points=stack.enter_context(installed(tmp_path / "site")))

        yield install


def hook(*lines: str) -> str:
    return "\n".join(["@hookimpl", "def register_ops(resolver):", *(f"    {line}" for line in lines)])


RUN = "import numpy as np\nG = Registration(invoke=lambda c, n: np.multiply(n.inputs[0].data, 2, out=n.outputs[0].data))\n"


@rows(56)
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("OPLET_API = 99", "plugin API 99"),
        (hook("resolver.add_custom('Half', None)"), "neither a Registration"),
        (hook("resolver.add_custom('Half', Registration(invoke=print), 5, 2)"), "versions 5 to 2"),
        (hook("resolver.add_custom('Half', Registration(invoke=print), 1, 2 ** 62)"), "numbers from 1 to"),
    ],
)
def test_a_plugin_that_cannot_register_leaves_the_others_working(
    site: Callable[..., PluginManager], caplog: pytest.LogCaptureFixture, bad: str, words: str
) -> None:
    manager = site(bad=bad, good=RUN + hook("resolver.add_custom('Good', G)", "resolver.add_custom('Bad', G)"))
    assert run(Interpreter(model_content=MODEL, plugins=manager)) == [[4, 4], [2, 2]]
    [message] = caplog.messages
    assert "oplet-bad 0.9" in message
    assert words in message


@rows(56)
def test_a_plugin_that_registers_an_op_twice_is_told_of(
    site: Callable[..., PluginManager], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    twice = RUN + hook("resolver.add_custom('Good', Registration(invoke=print), 1, 3)", "resolver.add_custom('Good', G, 1, 2)")
    manager = site(bad=twice, good=RUN + hook("resolver.add_custom('Bad', G)"))
    assert run(Interpreter(model_content=MODEL, plugins=manager)) == [[4, 4], [2, 2]]
    assert caplog.messages == ["Plugin 'bad' of oplet-bad 0.9: it registers Good twice in a version of 1 to 3; the last counts."]


@rows(56, 58)
def test_two_plugins_that_claim_one_op_are_both_named(site: Callable[..., PluginManager]) -> None:
    both = RUN + hook("resolver.add_custom('Good', G)")
    manager = site(one=both, two=both, bad=RUN + hook("resolver.add_custom('Bad', G)"))
    refusal(
        lambda: Interpreter(model_content=MODEL, plugins=manager),
        "Good version 1 .* oplet-one 0.9 and oplet-two 0.9; choose with prefer=",
    )
    assert run(Interpreter(model_content=MODEL, plugins=manager, prefer=["oplet-two"])) == [[4, 4], [2, 2]]


@rows(56)
@pytest.mark.parametrize("target", ["not_there:G", "oplet_bad:MISSING", "oplet_bad:NUMBER", "oplet_bad:EMPTY"])
def test_a_kernel_that_cannot_be_imported_is_named_when_it_is_needed(site: Callable[..., PluginManager], target: str) -> None:
    manager = site(
        bad="NUMBER = 3\nEMPTY = Registration()\n" + hook(f"resolver.add_custom('Bad', '{target}')"),
        good=RUN + hook("resolver.add_custom('Good', G)"),
    )
    refusal(lambda: Interpreter(model_content=MODEL, plugins=manager), "oplet-bad 0.9.*Bad|Bad.*oplet-bad 0.9")
    assert run(Interpreter(model_content=one_op_model("Good", [X], [X]), plugins=manager)) == [[2, 2]]
