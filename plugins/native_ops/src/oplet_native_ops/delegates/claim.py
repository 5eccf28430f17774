"""Carries out what a delegate library requests while it claims nodes of a subgraph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oplet import BuiltinOperator, Context, DelegateContext, DelegateParams, Registration
from oplet.errors import DelegateError, OpletError
from oplet_native_ops.delegates.graph import DelegateGraph, int_array
from oplet_native_ops.delegates.kernel import PartitionNode
from oplet_native_ops.ops.entry import Kernel
from oplet_native_ops.ops.kernel import bind, free, prepare
from oplet_native_ops.shim.layouts import Address, IntArray, NativeDelegateParams, Registered, array_values
from oplet_native_ops.shim.library import shim
from oplet_native_ops.shim.memory import Mappings, word

if TYPE_CHECKING:
    from oplet_native_ops.delegates.delegate import NativeDelegate

__all__ = ["Claim"]

_OK, _ERROR = 0, 1
_INT, _ARRAY = ctypes.c_int, ctypes.POINTER(IntArray)
_PHASE_DELEGATE = 3
_HAS_INVOKE = 8
_METHODS = ("init", "free", "prepare", "invoke")

#: As `GraphHooks` of `native/graph.h`.
_HOOKS: dict[str, Any] = {
    "replace": ctypes.CFUNCTYPE(_INT, Address, ctypes.POINTER(Registered), _ARRAY, Address),
    "preview": ctypes.CFUNCTYPE(_INT, Address, _ARRAY, ctypes.POINTER(Address), ctypes.POINTER(_INT)),
    "metadata": ctypes.CFUNCTYPE(_INT, Address, ctypes.c_char_p, ctypes.POINTER(Address), ctypes.POINTER(ctypes.c_size_t)),
    "acquire": ctypes.CFUNCTYPE(_INT, Address, _INT, ctypes.POINTER(Address)),
    "release": ctypes.CFUNCTYPE(_INT, Address, _INT),
    "skip": ctypes.CFUNCTYPE(_INT, Address, _INT),
}
#: Those that any subgraph answers alike.
_OF_THE_MODEL = ("metadata", "acquire", "release", "skip")


class Claim:
    """The state of one call of a delegate's Prepare function on one subgraph.

    Args:
        context: oplet's view of the subgraph.
        graph: the library's view of the subgraph, in C structs.

    Attributes:
        claimed: the indices of the nodes that the library replaced by kernels of its own.
        failure: the first error when the library replaced nodes or previewed partitions, which fails the claim even if the
            library ignores it; None if there was none.
        complaint: the last error in another callback, reported only if the library then fails.
    """

    def __init__(self, delegate: NativeDelegate, context: DelegateContext, graph: DelegateGraph) -> None:
        self.claimed: set[int] = set()
        self.failure: BaseException | None = None
        self.complaint: BaseException | None = None
        self._delegate = delegate
        self._context = context
        self._graph = graph
        self._shim = shim()
        self._previewed: list[Any] = []
        self._found: dict[str, ctypes.Array[ctypes.c_char]] = {}
        self._acquired: set[int] = set()
        self._hooks: dict[str, Any] = {}

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Return a context manager in which the library's callbacks are answered for this subgraph."""
        self._hooks = {name: kind(self._guarded(getattr(self, f"_{name}"))) for name, kind in _HOOKS.items()}
        self._serve(self._graph, self._hooks)
        try:
            yield
        finally:
            for graph in (self._graph, *self._graph.others.values()):
                self._serve(graph, ())
            self._hooks = {}
            self._forget_preview()

    def _serve(self, graph: DelegateGraph, names: Collection[str]) -> None:
        """Set exactly the callbacks of these names in the graph's C struct; the others become null."""
        table = (Address * len(_HOOKS)).from_address(self._shim.oplet_native_hooks(graph.pointer))
        table[:] = [ctypes.cast(self._hooks[name], Address).value if name in names else None for name in _HOOKS]

    def _guarded(self, hook: Callable[..., None]) -> Callable[..., int]:
        """Wrap a callback to return a status instead of raising, as exceptions cannot pass through C."""

        def run(*arguments: Any) -> int:
            try:
                hook(*arguments)
            except BaseException as error:
                if hook in (self._replace, self._preview) or not isinstance(error, OpletError):
                    self.failure = self.failure or error
                else:
                    self.complaint = error
                return _ERROR
            return _OK

        return run

    # Nodes ---------------------------------------------------------------------------------------------------------------

    def _nodes(self, array: Any, what: str) -> list[int]:
        """Return the node indices in a TfLiteIntArray from the library, checked."""
        if not array:
            raise DelegateError(f"It {what} nodes by a null pointer.")
        size = array.contents.size
        if not 0 <= size <= 2**20:
            raise DelegateError(f"It {what} {size} nodes, which cannot be.")
        nodes = list(dict.fromkeys(array_values(array)))
        plan = set(self._context.execution_plan)
        count = max(plan, default=-1) + 1
        for index in nodes:
            if not 0 <= index < count:
                raise DelegateError(f"It {what} node {index}, which there is not: the subgraph has {count} nodes.")
        return nodes

    def _replace(self, _: int, given: Any, array: Any, delegate: int | None) -> None:
        nodes = self._nodes(array, "claims")
        for index in nodes:
            if index in self._graph.withheld and index in self._context.execution_plan:
                raise DelegateError(f"It claims node {index}, which it was not shown: {self._graph.withheld[index]}.")
        if delegate != self._delegate.pointer:
            raise DelegateError("It claims nodes for another delegate than itself.")
        kernel, operator = self._kernel_of(given)
        self._graph.keep(kernel, operator)
        self._graph.take_inputs(self._context)

        def init(context: Context, params: DelegateParams) -> PartitionNode:
            self._delegate.remember(context, self._graph)
            for tensor in params.output_tensors:
                self._graph.tensor(tensor.index).delegate = self._delegate.pointer
            return PartitionNode(self._delegate, kernel, self._graph, context, params)

        registration = Registration(
            builtin_code=BuiltinOperator.DELEGATE,
            custom_name=self._delegate.name,
            init=init,
            free=free,
            prepare=prepare,
            bind=bind,
        )
        before = set(self._context.execution_plan)
        self._context.replace_node_subsets_with_delegate_kernels(registration, nodes)
        self.claimed.update(before - set(self._context.execution_plan))
        self._graph.show_nodes(self._context)
        self._shim.oplet_native_phase(self._graph.pointer, _PHASE_DELEGATE)

    def _kernel_of(self, given: Any) -> tuple[Kernel, int | None]:
        """Return the claimed partitions' kernel: a TfLiteRegistration, or the TfLiteOperator in it."""
        registration: Registered = given.contents
        operator: int | None = registration.registration_external
        is_operator = bool(operator) and bool(self._shim.oplet_native_is_operator(operator))
        if self._delegate.is_opaque and not is_operator:
            raise DelegateError("It replaces nodes by a null operator, or by one that TfLiteOperatorCreate did not make.")
        address = operator if is_operator else ctypes.addressof(registration)
        if not is_operator:
            mapped = Mappings()
            for i, method in enumerate(_METHODS):
                function = word(address + 8 * i)  # type: ignore[operator]
                if function and not mapped.has(function, 1, "x"):
                    raise DelegateError(f"It replaces nodes by a registration whose {method} is no function.")
        pointer = self._shim.oplet_native_kernel(address, is_operator)
        if not pointer:
            raise MemoryError
        kernel = Kernel(pointer, "", None, 0, self._delegate.name)
        if not self._shim.oplet_native_methods(pointer) & _HAS_INVOKE:
            self._shim.oplet_native_kernel_free(pointer)
            raise DelegateError("It replaces nodes by a kernel without invoke, which cannot run.")
        return kernel, operator if is_operator and self._delegate.is_opaque else None

    def _preview(self, _: int, array: Any, into: Any, count: Any) -> None:
        nodes = self._nodes(array, "asks for the partitions of")
        self._graph.take_inputs(self._context)
        self._forget_preview()
        subsets = [each for each in self._context.preview_delegate_partitioning(nodes) if each.claimed]
        made = (NativeDelegateParams * max(len(subsets), 1))()
        self._previewed = [made]
        for params, subset in zip(made, subsets):
            lists = [int_array(values) for values in (subset.nodes, subset.inputs, subset.outputs)]
            self._previewed += lists
            params.nodes, params.inputs, params.outputs = lists
        into[0], count[0] = ctypes.addressof(made), len(subsets)

    def _forget_preview(self) -> None:
        for array in self._previewed[1:]:
            self._shim.TfLiteIntArrayFree(array)
        self._previewed = []

    # The model ------------------------------------------------------------------------------------------------------------

    def _metadata(self, _: int, name: bytes, into: Any, size: Any) -> None:
        key = name.decode("utf-8", "replace")
        if key not in self._found:
            content = self._context.metadata(key)
            if content is None:
                raise DelegateError(f"It asks for the metadata '{key}', which the model does not have.")
            self._found[key] = self._graph.hold(content)
        into[0], size[0] = ctypes.addressof(self._found[key]), ctypes.sizeof(self._found[key])

    def _acquire(self, _: int, index: int, into: Any) -> None:
        others = self._graph.others
        if index not in self._acquired:
            context = self._context.subgraph_context(index)
            graph = others.get(index) or DelegateGraph(context)
            graph.show(context)
            others[index] = graph  # kernels look at it for as long as they live
            self._acquired.add(index)
            self._serve(graph, _OF_THE_MODEL)
            self._shim.oplet_native_phase(graph.pointer, _PHASE_DELEGATE)
        into[0] = others[index].pointer

    def _release(self, _: int, index: int) -> None:
        if index not in self._acquired:
            raise DelegateError(f"It releases subgraph {index}, which it did not acquire.")

    def _skip(self, _: int, index: int) -> None:
        self._context.mark_subgraph_as_delegation_skippable(index)
