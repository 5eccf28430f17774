"""The contract of a delegate, as a class of tests to inherit from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from oplet.delegates.delegate import Delegate, DelegateContext
from oplet.delegates.partition import NodeSubset
from oplet.errors import DelegateError
from oplet.ops.context import Node
from oplet.ops.registration import Registration
from oplet.ops.tensor import Tensor
from oplet.runtime.delegation import load_delegate
from oplet.runtime.interpreter import Interpreter
from oplet.testing.contract import Contract, check, plan, run
from oplet.testing.watching import ASKED_FOR, Fault

__all__ = ["DelegateContract"]


class DelegateContract(Contract):
    """Tests that every delegate must pass; see `Contract` for what a subclass may say.

    Attributes:
        delegate: its name, as `load_delegate` takes it, or a class or function that takes the options.
        options: what it is told.

    The model's nodes must be served without the delegate too, for the answers are compared.

    Example:
        >>> import numpy as np
        >>> from oplet.testing import DelegateContract, Spec, one_op_model
        >>> class TestExample(DelegateContract):
        ...     delegate = "example"
        ...     model = one_op_model("TANH", [Spec("float32", [4])], [Spec("float32", [4])])
        ...     inputs = [np.array([-1, 0, 1, 2], np.float32)]
    """

    delegate: ClassVar[Any]
    options: ClassVar[Mapping[str, Any]] = {}

    def make_delegate(self) -> Delegate:
        """A delegate of the kind under test."""
        maker = type(self).__dict__.get("delegate", self.delegate)
        if isinstance(maker, staticmethod):
            maker = maker.__func__
        made = load_delegate(maker, self.options) if isinstance(maker, str) else maker(dict(self.options))
        check(isinstance(made, Delegate), f"{made!r} is no Delegate")
        return made

    @contextmanager
    def opened(self, **arguments: Any) -> Iterator[Interpreter]:
        """An interpreter to which the delegate was applied, closed at the end."""
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
                    interpreter.modify_graph_with_delegate(_Failing(self.make_delegate(), trouble))
                except DelegateError:
                    pass
                else:
                    raise AssertionError("it hides that claiming its nodes failed")
                check(_described(interpreter) == before, "after it failed to apply, the nodes or tensors are not what they were")
                self.same(run(interpreter, self.inputs), wanted, "after it failed to apply, the graph answers otherwise")


class _Failing(Delegate):
    """A delegate whose claim of nodes fails, before or after it was carried out."""

    def __init__(self, inner: Delegate, trouble: str) -> None:
        super().__init__()
        self.inner = inner
        self.name = inner.name
        self.flags = inner.flags
        self.trouble = trouble

    def prepare(self, context: DelegateContext) -> None:
        self.inner.prepare(_FailingContext(context, self.trouble))


class _FailingContext(DelegateContext):
    def __init__(self, inner: DelegateContext, trouble: str) -> None:
        self.inner = inner
        self.trouble = trouble

    @property
    def subgraph_index(self) -> int:
        return self.inner.subgraph_index

    @property
    def num_subgraphs(self) -> int:
        return self.inner.num_subgraphs

    @property
    def inputs(self) -> list[int]:
        return self.inner.inputs

    @property
    def outputs(self) -> list[int]:
        return self.inner.outputs

    @property
    def tensors(self) -> Sequence[Tensor]:
        return self.inner.tensors

    @property
    def execution_plan(self) -> list[int]:
        return self.inner.execution_plan

    def node(self, index: int) -> Node:
        return self.inner.node(index)

    def metadata(self, name: str) -> bytes | None:
        return self.inner.metadata(name)

    def report_unsupported(self, node: int, reason: str) -> None:
        self.inner.report_unsupported(node, reason)

    def subgraph_context(self, index: int) -> DelegateContext:
        return _FailingContext(self.inner.subgraph_context(index), self.trouble)

    def mark_subgraph_as_delegation_skippable(self, index: int) -> None:
        self.inner.mark_subgraph_as_delegation_skippable(index)

    def preview_delegate_partitioning(self, nodes: Collection[int]) -> list[NodeSubset]:
        return self.inner.preview_delegate_partitioning(nodes)

    def replace_node_subsets_with_delegate_kernels(self, registration: Registration, nodes: Collection[int]) -> None:
        if self.trouble == "after":
            self.inner.replace_node_subsets_with_delegate_kernels(registration, nodes)
        raise Fault(f"claiming nodes {ASKED_FOR}")


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
