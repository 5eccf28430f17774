"""The contract of a delegate, as a class of tests to inherit from."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, cast

from oplet import Context, Delegate, DelegateContext, Interpreter, Node, Registration, Tensor, load_delegate
from oplet.errors import DelegateError, OpletError
from oplet.toolkit import Thunk
from oplet_testing.contract import Contract
from oplet_testing.harness.assertions import check, identical
from oplet_testing.harness.graph_access import graph, plan
from oplet_testing.harness.runs import run
from oplet_testing.harness.spies import INJECTED, InjectedFault, RegistrationSpy

__all__ = ["DelegateContract"]


class DelegateContract(Contract):
    """Tests that every delegate must pass; see `Contract` for the other attributes.

    Attributes:
        delegate: the delegate's name, as `load_delegate` takes it, or a class or function that takes the options.
        options: the delegate's options.

    The model must run without the delegate too, since the outputs of both runs are compared.

    Examples:
        >>> import numpy as np
        >>> from oplet_testing import DelegateContract, Spec, one_op_model
        >>> class TestExample(DelegateContract):
        ...     delegate = "example"
        ...     model = one_op_model("TANH", [Spec("float32", [4])], [Spec("float32", [4])])
        ...     inputs = [np.array([-1, 0, 1, 2], np.float32)]
    """

    delegate: ClassVar[Any]
    options: ClassVar[Mapping[str, Any]] = {}

    def make_delegate(self) -> Delegate:
        """Create a delegate with the contract's options."""
        maker = type(self).__dict__.get("delegate", self.delegate)
        if isinstance(maker, staticmethod):
            maker = maker.__func__
        made = load_delegate(maker, self.options) if isinstance(maker, str) else maker(dict(self.options))
        check(isinstance(made, Delegate), f"{made!r} is no Delegate")
        return made

    @contextmanager
    def opened(self, **arguments: Any) -> Iterator[Interpreter]:
        """Yield a new interpreter with the delegate applied, closed at the end; the arguments are for its constructor."""
        with super().opened(**{"experimental_delegates": [self.make_delegate()], **arguments}) as interpreter:
            yield interpreter

    def test_it_claims_a_node_of_the_model(self) -> None:
        with self.opened() as interpreter, self.opened(experimental_delegates=None) as plain:
            now, before = ([node.op_name for node in plan(each)] for each in (interpreter, plain))
        check(now != before, f"it leaves every node of the model alone: {', '.join(before)}")

    def test_the_answers_are_those_without_it(self) -> None:
        for values in (self.inputs, self._others(), self._resized()):
            if values:
                with self.opened(experimental_delegates=None) as plain:
                    wanted = run(plain, values)
                self.same(self.fresh(values), wanted, "the delegate answers otherwise than the kernels that it replaces")

    def test_a_failure_leaves_the_graph_as_it_was(self) -> None:
        for trouble in ("before", "after"):
            with self.opened(experimental_delegates=None) as interpreter:
                wanted = run(interpreter, self.inputs)
                before = _described(interpreter)
                try:
                    interpreter.modify_graph_with_delegate(_with_spy(self.make_delegate(), RegistrationSpy(), trouble))
                except DelegateError:
                    pass
                else:
                    raise AssertionError("it hides that claiming its nodes failed")
                check(_described(interpreter) == before, "after it failed to apply, the nodes or tensors are not what they were")
                self.same(run(interpreter, self.inputs), wanted, "after it failed to apply, the graph answers otherwise")

    def test_every_kernel_is_freed_once(self) -> None:
        for trouble in ("", "resize", "remove", "claim", "prepare", "invoke", "free"):
            spy = RegistrationSpy(trouble)
            delegate = _with_spy(self.make_delegate(), spy, "after" if trouble == "claim" else "")
            try:
                with self.opened(experimental_delegates=[delegate]) as interpreter:
                    run(interpreter, self.inputs)
                    if trouble == "resize":
                        run(interpreter, self._resized() or self.inputs)
                        run(interpreter, self.inputs)
                    elif trouble == "remove":
                        interpreter.remove_all_delegates()
                        interpreter.modify_graph_with_delegate(delegate)
                        run(interpreter, self.inputs)
            except OpletError as error:
                check(INJECTED in str(error), f"{_when(trouble)}, it fails in another place too: {error}")
            gc.collect()  # frees the interpreter if its constructor failed
            check(not spy.strays, f"{_when(trouble)}, free was called with what no init had returned")
            check(
                spy.inits == spy.frees and not spy.live,
                f"{_when(trouble)}, there were {spy.inits} calls of init and {spy.frees} of free",
            )

    def test_after_a_resize_it_claims_what_it_claimed(self) -> None:
        if not self._resized():
            return
        with self.opened() as interpreter:
            run(interpreter, self.inputs)
            first = [report.partitions for report in interpreter.delegation_reports()]
            run(interpreter, self._resized())
            run(interpreter, self.inputs)
            again = [report.partitions for report in interpreter.delegation_reports()]
            check(again == first, f"resized and back, it claims the nodes {again}, before it was {first}")

    def test_it_says_why_it_leaves_a_node_alone(self) -> None:
        with self.opened() as interpreter:
            for report in interpreter.delegation_reports():
                claimed = {index for nodes in report.partitions for index in nodes}
                for node in interpreter.subgraphs[report.subgraph].nodes[: report.nodes]:
                    why = report.unsupported.get(node.index, "").strip()
                    said = node.index in claimed or why not in ("", "not supported")
                    check(said, f"it does not say why it leaves node {node.index} ({node.op_name}) alone: '{why}'")

    def test_it_writes_its_own_tensors_only(self) -> None:
        changed: list[Tensor] = []

        def around(context: Context, node: Node, thunk: Thunk) -> None:
            others = [tensor for tensor in _others_in_use(interpreter, node) if tensor.has_data]
            before = [tensor.data.copy() for tensor in others]
            thunk()
            changed.extend(tensor for tensor, value in zip(others, before) if not identical(tensor.data, value))

        delegate = _with_spy(self.make_delegate(), RegistrationSpy(around=around))
        with self.opened(experimental_delegates=[delegate]) as interpreter:
            for values in (self.inputs, self._others()):
                run(interpreter, values)
        check(not changed, f"running nodes of its own, it changed {changed[:1]}, which is not its to write")


def _with_spy(delegate: Delegate, spy: RegistrationSpy, trouble: str = "") -> Delegate:
    """Give the delegate's `prepare` a context that counts calls of its kernels in `spy`; return the delegate. With `trouble`
    "before" or "after", claiming nodes fails before or after it has taken effect.
    """
    prepare = delegate.prepare
    # Set on the instance, since the delegate must stay the object that its kernels know.
    delegate.prepare = lambda context: prepare(cast(DelegateContext, _SpyContext(context, spy, trouble)))  # type: ignore[method-assign]
    return delegate


class _SpyContext:
    """Context that counts the calls of a delegate's kernels; it fails "before" or "after" nodes are claimed (`trouble`). All else is the
    runtime's context.
    """

    def __init__(self, inner: DelegateContext, spy: RegistrationSpy, trouble: str) -> None:
        self.inner = inner
        self.spy = spy
        self.trouble = trouble

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def subgraph_context(self, index: int) -> _SpyContext:
        return _SpyContext(self.inner.subgraph_context(index), self.spy, self.trouble)

    def replace_node_subsets_with_delegate_kernels(self, registration: Registration, nodes: Collection[int]) -> None:
        if self.trouble != "before":
            self.inner.replace_node_subsets_with_delegate_kernels(self.spy.spy_on(registration), nodes)
        if self.trouble:
            raise InjectedFault(f"claiming nodes {INJECTED}")


def _others_in_use(interpreter: Interpreter, kernel: Node) -> list[Tensor]:
    """Return the tensors that a kernel must not change, though it or a later node reads them: inputs, constants and other nodes'
    outputs.
    """
    nodes = plan(interpreter)
    if kernel not in nodes:
        return []  # it is in a subgraph that another one calls
    position = nodes.index(kernel)
    subgraph = graph(interpreter)
    made = [subgraph.tensors[index] for index in subgraph.inputs]
    made += [tensor for node in nodes[:position] for tensor in node.outputs]
    read = [subgraph.tensors[index] for index in subgraph.outputs]
    read += [tensor for node in nodes[position:] for tensor in node.inputs if tensor is not None]
    made += [tensor for tensor in read if tensor.is_constant]
    return [t for t in dict.fromkeys(made) if t in read and t not in kernel.outputs and not t.is_variable]


def _when(trouble: str) -> str:
    situations = {"": "without any trouble", "resize": "after resizes", "remove": "removed and applied again"}
    return situations.get(trouble, f"where {trouble} raises")


def _described(interpreter: Interpreter) -> list[Any]:
    return [
        (
            node.op_name,
            node.version,
            [None if t is None else (t.index, t.type, t.shape) for t in node.inputs],
            [(t.index, t.type, t.shape) for t in node.outputs],
        )
        for node in plan(interpreter)
    ]
