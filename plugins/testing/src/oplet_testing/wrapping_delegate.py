"""A delegate whose kernels run the nodes that they replace with these nodes' own kernels.

It tests what delegation does to a graph, without an accelerator: the outputs must equal those of the graph without a delegate bit for
bit. It is also an example of a delegate kernel for all that nodes do: fold constants, decide shapes while running, call subgraphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import (
    Allocation,
    Callee,
    Context,
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateKernel,
    DelegateParams,
    Node,
    SimpleDelegate,
    Tensor,
    TensorBuilder,
)
from oplet.errors import StateError
from oplet.schema.enums import TensorType
from oplet.toolkit import Thunk, prepare_claimed, resize_now

__all__ = ["WrappingDelegate"]

Array = NDArray[Any]


class WrappingDelegate(SimpleDelegate):
    """A delegate that claims the given nodes and runs them with their own registrations.

    Args:
        claims: the nodes to claim: a function of the context and the node, or indices of nodes of subgraph 0; all nodes by default.
        dynamic: whether it declares that it can run tensors of dynamic shapes (`DelegateFlags.ALLOW_DYNAMIC_TENSORS`).

    Examples:
        >>> from oplet import Interpreter
        >>> from oplet_testing import WrappingDelegate
        >>> Interpreter("model.tflite", experimental_delegates=[WrappingDelegate({0, 3})])  # doctest: +SKIP
    """

    name = "Wrapping"

    def __init__(
        self, claims: Callable[[DelegateContext, Node], bool] | Iterable[int] | None = None, *, dynamic: bool = True
    ) -> None:
        super().__init__()
        self.flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS if dynamic else DelegateFlags.NONE
        if claims is None or callable(claims):
            self._claims = claims
        else:
            wanted = set(claims)
            self._claims = lambda context, node: context.subgraph_index == 0 and node.index in wanted

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        if node.registration is None:
            return "nothing serves it"
        return self._claims is None or self._claims(context, node) or "it is not told to"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return _Kernel(params, self.around)

    def around(self, node: Node, thunk: Thunk) -> Thunk:
        """Return the function that runs a claimed node: here `thunk` itself; a subclass may wrap it.

        Args:
            node: the node, whose outputs have their memory by now.
            thunk: the function, without arguments, that the node's own kernel returned for running it.
        """
        return thunk


class _InnerContext(Context):
    """The context that claimed nodes' kernels get: it passes calls on to the runtime's context, except that it allocates tensors
    itself which are resized while nodes run.

    Attributes:
        running: whether nodes run; False while they are prepared.
        outside: the runtime's context, to which calls are passed on.
        border: the partition's output tensors, which nodes outside read.
    """

    def __init__(self, outside: Context, border: Sequence[Tensor]) -> None:
        self.running = False
        self.outside = outside
        self.border = border

    @property
    def num_threads(self) -> int:  # type: ignore[override]
        return self.outside.num_threads

    @property
    def default_delegates(self) -> bool:  # type: ignore[override]
        return self.outside.default_delegates

    def parallel(self, parts: Sequence[Callable[[], None]]) -> Callable[[], None]:
        return self.outside.parallel(parts)

    @property
    def max_while_iterations(self) -> int:  # type: ignore[override]
        return self.outside.max_while_iterations

    @property
    def restarts(self) -> int:  # type: ignore[override]
        return self.outside.restarts

    @property
    def tensors(self) -> Sequence[Tensor]:
        return self.outside.tensors

    @property
    def resources(self) -> dict[Any, Any]:
        return self.outside.resources

    def callee(self, index: int) -> Callee:
        return self.outside.callee(index)

    def record_operator(self, node: Node, start: float, seconds: float) -> None:
        self.outside.record_operator(node, start, seconds)

    def add_tensor(self, builder: TensorBuilder) -> int:
        return self.outside.add_tensor(builder)

    def add_temporary(
        self,
        node: Node,
        shape: Sequence[int],
        type: Any = TensorType.FLOAT32,
        *,
        allocation: Allocation = Allocation.ARENA,
        name: str = "",
    ) -> Tensor:
        return self.outside.add_temporary(node, shape, type, allocation=allocation, name=name)

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        if self.running:
            resize_now(tensor, shape)
        else:
            self.outside.resize_tensor(tensor, shape)

    def set_dynamic(self, tensor: Tensor) -> None:
        self.outside.set_dynamic(tensor)

    def set_constant(self, tensor: Tensor, value: Array) -> None:
        if self.running and tensor in self.border:  # nodes outside were prepared for a dynamic tensor
            self.resize_tensor(tensor, value.shape)
            tensor.data[...] = value
        else:
            self.outside.set_constant(tensor, value)


class _DeferredNode:
    """A node behind one with an output of dynamic shape: prepared, and bound to arrays, when its inputs have their values."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.thunk: Thunk | None = None
        self._seen: list[Array | None] = []

    def fits(self) -> bool:
        """Return whether the stored function still fits: the inputs have the same arrays as when it was stored."""
        return self.thunk is not None and all(a is b for a, b in zip(self._seen, self._arrays()))

    def keep(self, thunk: Thunk) -> None:
        """Store the function that runs the node, which is bound to the arrays that the inputs have now."""
        self.thunk = thunk
        self._seen = self._arrays()

    def _arrays(self) -> list[Array | None]:
        return [None if tensor is None else tensor.data for tensor in self.node.inputs]


class _Kernel(DelegateKernel):
    """The delegate's kernel: runs the nodes of one partition in order, with their own kernels."""

    def __init__(self, params: DelegateParams, around: Callable[[Node, Thunk], Thunk]) -> None:
        self.delegate: Delegate = params.delegate
        self.around = around
        self.nodes = params.nodes
        self.border = params.output_tensors
        self.inner = [t for node in params.nodes for t in node.outputs if t not in params.output_tensors]
        self.static: list[Node] = []
        self.deferred: list[_DeferredNode] = []
        self.known: Array | None = None

    def prepare(self, context: Context, node: Node) -> None:
        inside = _InnerContext(context, self.border)
        for tensor in self.inner:
            _reset_allocation(tensor)
        self.static = []
        self.known = None
        remaining = iter(self.nodes)
        for claimed in remaining:
            prepare_claimed(context, inside, claimed)
            if _fold(inside, claimed, self.border):
                continue
            self.static.append(claimed)
            if any(tensor.is_dynamic for tensor in claimed.outputs):
                break
        self.deferred = [_DeferredNode(claimed) for claimed in remaining]
        for deferred in self.deferred:
            for tensor in deferred.node.outputs:
                context.set_dynamic(tensor)
        # Temporaries have memory while the kernel runs; the outputs get theirs from the runtime.
        inner = [tensor for tensor in self.inner if not tensor.is_dynamic and not tensor.is_constant]
        node.temporaries = inner + [tensor for claimed in self.static for tensor in claimed.temporaries]
        if self.static and self.border and all(tensor.is_constant for tensor in self.border):
            # The runtime does not run a node whose outputs are all constant, but some of these nodes have to run.
            self.known = self.border[-1].data
            self.border[-1].allocation = Allocation.ARENA

    def bind(self, context: Context, node: Node) -> Thunk:
        inside = _InnerContext(context, self.border)
        inside.running = True
        steps = [self.around(claimed, _bind(inside, claimed)) for claimed in self.static]
        steps += [partial(_run_deferred, inside, deferred, self.around) for deferred in self.deferred]
        if self.known is not None:
            steps.append(partial(np.copyto, self.border[-1].data, self.known))

        def run() -> None:
            for step in steps:
                step()

        return run


def _reset_allocation(tensor: Tensor) -> None:
    if tensor.allocation in (Allocation.DYNAMIC, Allocation.COMPUTED):
        tensor.allocation = Allocation.ARENA


def _bind(inside: _InnerContext, node: Node) -> Thunk:
    registration = node.registration
    if registration is None:
        raise StateError(f"{node} has no kernel.")
    if registration.bind is not None:
        return registration.bind(inside, node)
    if registration.invoke is None:
        raise StateError(f"{node} has neither invoke nor bind.")
    return partial(registration.invoke, inside, node)


def _fold(inside: _InnerContext, node: Node, border: Sequence[Tensor]) -> bool:
    """Run a pure node with constant inputs ahead; return whether its outputs are constants now, so that it need not run again."""
    if node.outputs and all(tensor.allocation is Allocation.COMPUTED for tensor in node.outputs):
        return True
    inputs = [tensor for tensor in node.inputs if tensor is not None]
    if (
        node.registration is None
        or not node.registration.pure
        or not node.inputs
        or not all(tensor.is_constant for tensor in inputs)
    ):
        return False
    inside.running = True
    _give_memory(inside, node, afresh=True)
    _bind(inside, node)()
    inside.running = False
    node.temporaries = []
    for tensor in node.outputs:
        if not tensor.is_variable:
            inside.set_constant(tensor, tensor.data)
    return True


def _give_memory(inside: _InnerContext, node: Node, *, afresh: bool = False) -> None:
    for tensor in (*node.outputs, *node.temporaries):
        if not tensor.is_dynamic and not tensor.is_constant:
            if afresh:
                tensor.set_memory(None)
            inside.resize_tensor(tensor, tensor.shape)


def _run_deferred(inside: _InnerContext, deferred: _DeferredNode, around: Callable[[Node, Thunk], Thunk]) -> None:
    node = deferred.node
    if not deferred.fits():
        for tensor in node.outputs:
            if tensor not in inside.border:
                _reset_allocation(tensor)
        prepare_claimed(inside.outside, inside, node)
        _give_memory(inside, node)
        deferred.keep(around(node, _bind(inside, node)))
    if deferred.thunk is not None:
        deferred.thunk()
