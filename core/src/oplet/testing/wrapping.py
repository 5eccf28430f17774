"""A delegate that runs whatever it claims with the nodes' own kernels, inside its partitions.

With it one asks the runtime, or a tool, what delegation does to a graph, without an accelerator and without new numbers: the
outputs must be those of the graph without a delegate, bit for bit. It is also an example of a kernel that copes with
everything a node can do: fold constants, decide shapes while running, call other subgraphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from oplet.delegates.delegate import Delegate, DelegateContext, DelegateFlags, DelegateKernel, DelegateParams, SimpleDelegate
from oplet.errors import StateError
from oplet.ops.callee import Callee
from oplet.ops.context import Context, Declined, Node
from oplet.ops.node import Kernel, Thunk
from oplet.ops.tensor import Allocation, Array, Tensor, TensorBuilder
from oplet.runtime.execution.checks import checked_shape
from oplet.runtime.execution.declining import hand_on
from oplet.runtime.execution.initialization import is_taken
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.memory.arrays import new_array
from oplet.schema.enums import TensorType

__all__ = ["WrappingDelegate"]


class WrappingDelegate(SimpleDelegate):
    """Claims the nodes that it is told to and runs them with their own registrations.

    Args:
        claims: which nodes: a function of the context and the node, or indices of nodes of subgraph 0; all by default.
        dynamic: whether it says that it copes with shapes that are known only while invoking.

    Example:
        >>> from oplet import Interpreter
        >>> from oplet.testing import WrappingDelegate
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
        """What runs a claimed node: as it stands, what its own kernel bound; a subclass may do something before or after.

        Args:
            node: the node, whose outputs have their memory.
            thunk: of the provider that took it.
        """
        return thunk


class _Inside(Context):
    """The subgraph as the claimed nodes see it: as it is, but for when tensors get memory."""

    def __init__(self, outside: Context, border: Sequence[Tensor]) -> None:
        self.running = False
        if not isinstance(outside, KernelContext):
            raise StateError(f"Nodes are wrapped in the runtime's own context, not in a {type(outside).__name__}.")
        self.outside = outside
        self.border = border

    @property
    def num_threads(self) -> int:  # type: ignore[override]
        return self.outside.num_threads

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
        if not self.running:
            self.outside.resize_tensor(tensor, shape)
            return
        wanted = checked_shape(tensor, shape)
        if tensor.shape != wanted or not tensor.has_data or not tensor.data.flags.writeable:
            tensor.shape = wanted
            tensor.set_memory(new_array(tensor))
            tensor.resized = True

    def set_dynamic(self, tensor: Tensor) -> None:
        self.outside.set_dynamic(tensor)

    def set_constant(self, tensor: Tensor, value: Array) -> None:
        if self.running and tensor in self.border:  # it is dynamic to those outside, and stays so
            self.resize_tensor(tensor, value.shape)
            tensor.data[...] = value
        else:
            self.outside.set_constant(tensor, value)


class _Late:
    """A node behind one that decides a shape while running: prepared and bound when its own inputs are there."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.thunk: Thunk | None = None
        self._seen: list[Array | None] = []

    def fits(self) -> bool:
        """Whether what was bound before reads the arrays that its inputs are now."""
        return self.thunk is not None and all(a is b for a, b in zip(self._seen, self._arrays()))

    def keep(self, thunk: Thunk) -> None:
        """Remember what was bound to the present inputs."""
        self.thunk = thunk
        self._seen = self._arrays()

    def _arrays(self) -> list[Array | None]:
        return [None if tensor is None else tensor.data for tensor in self.node.inputs]


class _Kernel(DelegateKernel):
    """Runs the nodes of one partition in their order."""

    def __init__(self, params: DelegateParams, around: Callable[[Node, Thunk], Thunk]) -> None:
        self.delegate: Delegate = params.delegate
        self.around = around
        self.nodes = params.nodes
        self.border = params.output_tensors
        self.inner = [t for node in params.nodes for t in node.outputs if t not in params.output_tensors]
        self.early: list[Node] = []
        self.late: list[_Late] = []
        self.known: Array | None = None

    def prepare(self, context: Context, node: Node) -> None:
        inside = _Inside(context, self.border)
        for tensor in self.inner:
            _forget_kind(tensor)
        self.early = []
        self.known = None
        remaining = iter(self.nodes)
        for claimed in remaining:
            _prepare(inside, claimed)
            if _fold(inside, claimed, self.border):
                continue
            self.early.append(claimed)
            if any(tensor.is_dynamic for tensor in claimed.outputs):
                break
        self.late = [_Late(claimed) for claimed in remaining]
        for late in self.late:
            for tensor in late.node.outputs:
                context.set_dynamic(tensor)
        # What is named here has memory while the kernel runs; the runtime sees to the border's itself.
        inner = [tensor for tensor in self.inner if not tensor.is_dynamic and not tensor.is_constant]
        node.temporaries = inner + [tensor for claimed in self.early for tensor in claimed.temporaries]
        if self.early and self.border and all(tensor.is_constant for tensor in self.border):
            # To the runtime a node whose outputs are all known need not run; some of these nodes must.
            self.known = self.border[-1].data
            self.border[-1].allocation = Allocation.ARENA

    def bind(self, context: Context, node: Node) -> Thunk:
        inside = _Inside(context, self.border)
        inside.running = True
        steps = [self.around(claimed, _bind(inside, claimed)) for claimed in self.early]
        steps += [partial(_run_late, inside, late, self.around) for late in self.late]
        if self.known is not None:
            steps.append(partial(np.copyto, self.border[-1].data, self.known))

        def run() -> None:
            for step in steps:
                step()

        return run


def _forget_kind(tensor: Tensor) -> None:
    if tensor.allocation in (Allocation.DYNAMIC, Allocation.COMPUTED):
        tensor.allocation = Allocation.ARENA


def _registration(node: Node) -> Kernel:
    if node.registration is None:
        raise StateError(f"{node} has no kernel.")
    return node.registration


def _prepare(inside: _Inside, node: Node) -> None:
    """Have the node prepared by the first provider that does not decline it, as the runtime does."""
    if node.providers is not None:
        node.providers.restart()
    while True:
        node.temporaries = []
        if not is_taken(inside.outside, node):
            continue
        prepare = _registration(node).prepare
        try:
            if prepare is not None:
                prepare(inside, node)
            return
        except Declined as declined:
            hand_on(inside.outside, node, declined)


def _bind(inside: _Inside, node: Node) -> Thunk:
    registration = _registration(node)
    if registration.bind is not None:
        return registration.bind(inside, node)
    if registration.invoke is None:
        raise StateError(f"{node} has neither invoke nor bind.")
    return partial(registration.invoke, inside, node)


def _fold(inside: _Inside, node: Node, border: Sequence[Tensor]) -> bool:
    """Run a node whose inputs are all known; return whether it need not run again."""
    if node.outputs and all(tensor.allocation is Allocation.COMPUTED for tensor in node.outputs):
        return True
    inputs = [tensor for tensor in node.inputs if tensor is not None]
    if not _registration(node).pure or not node.inputs or not all(tensor.is_constant for tensor in inputs):
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


def _give_memory(inside: _Inside, node: Node, *, afresh: bool = False) -> None:
    for tensor in (*node.outputs, *node.temporaries):
        if not tensor.is_dynamic and not tensor.is_constant:
            if afresh:
                tensor.set_memory(None)
            inside.resize_tensor(tensor, tensor.shape)


def _run_late(inside: _Inside, late: _Late, around: Callable[[Node, Thunk], Thunk]) -> None:
    node = late.node
    if not late.fits():
        for tensor in node.outputs:
            if tensor not in inside.border:
                _forget_kind(tensor)
        _prepare(inside, node)
        _give_memory(inside, node)
        late.keep(around(node, _bind(inside, node)))
    if late.thunk is not None:
        late.thunk()
