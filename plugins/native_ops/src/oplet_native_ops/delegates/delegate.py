"""A delegate created by a shared library."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any

from oplet import Context, Delegate, DelegateContext, DelegateFlags, Tensor
from oplet.errors import DelegateError
from oplet_native_ops.delegates.claim import Claim
from oplet_native_ops.delegates.entry import create_delegate, destroy_delegate, is_opaque
from oplet_native_ops.delegates.graph import DelegateGraph
from oplet_native_ops.delegates.kernel import delegate_handle
from oplet_native_ops.delegates.shared import Shared
from oplet_native_ops.shim.layouts import NO_BUFFER_HANDLE, Status
from oplet_native_ops.shim.library import shim
from oplet_native_ops.shim.opening import open_library

__all__ = ["NativeDelegate", "load_delegate_library"]

#: What LiteRT knows; a library may have more in mind.
_KNOWN_FLAGS = 15


def load_delegate_library(path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> NativeDelegate:
    """Load a shared library's delegate; `oplet.load_delegate` calls this for paths.

    The library is native code that runs inside this program and can do whatever it can: load what you trust.

    Args:
        path: the library (.so). A file, or a name that is looked for in LD_LIBRARY_PATH and the system's folders.
        options: the delegate's options, converted to strings.

    Raises:
        PluginError: the library cannot be loaded.
        DelegateError: the library creates no delegate, or an invalid one.

    Examples:
        >>> from oplet import Interpreter, load_delegate
        >>> Interpreter("model.tflite", experimental_delegates=[load_delegate("libfoo.so")])  # doctest: +SKIP
    """
    return NativeDelegate(path, options)


class NativeDelegate(Shared, Delegate):
    """A delegate of a shared library; see `load_delegate_library`.

    Attributes:
        pointer: the library's delegate, a TfLiteDelegate; None once it is destroyed.
        is_opaque: whether it has the opaque interface.
        data: the user data with which the functions of an opaque delegate are called; None for others.
    """

    def __init__(self, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        Delegate.__init__(self, options)
        self.pointer: int | None = None
        self._shim = shim()
        self._library = open_library(path)
        self.name = self._library.name
        self.pointer = create_delegate(self._library, self.options)
        self.is_opaque = is_opaque(self.pointer)
        self.data: int | None = self._shim.TfLiteOpaqueDelegateGetData(self.pointer) if self.is_opaque else None
        self.flags = DelegateFlags(self._shim.oplet_native_delegate_flags(self.pointer) & _KNOWN_FLAGS)
        self._contexts: weakref.WeakSet[Context] = weakref.WeakSet()

    def _end(self) -> None:
        pointer, self.pointer = self.pointer, None
        if pointer is not None:
            destroy_delegate(self._library, pointer)

    @property
    def profiles_operators(self) -> bool:
        """Return False: the library gets no profiler."""
        return False

    def prepare(self, context: DelegateContext) -> None:
        graph = self._graph_of(context)
        graph.show(context)
        plan = context.execution_plan
        claim = Claim(self, context, graph)
        with claim.serving():
            status = self._shim.oplet_native_delegate_prepare(self.pointer, graph.pointer)
        if claim.failure is not None:
            raise claim.failure
        if status:
            raise DelegateError(graph.error or str(claim.complaint or _reason(graph, status)))
        for index in plan:
            if index not in claim.claimed and context.node(index).delegate is None:
                context.report_unsupported(index, graph.left(index))

    def _graph_of(self, context: DelegateContext) -> DelegateGraph:
        """Return the library's view of the subgraph: an earlier one if it still fits, else a new one (e.g. after inlining)."""
        earlier = None
        for known in self._contexts:
            if known.tensors is context.tensors and (graph := self._graph_in(known)) is not None:
                if graph.has_all_of(context):
                    return graph
                earlier = graph
        made = DelegateGraph(context)
        made.earlier = earlier
        return made

    def remember(self, context: Context, graph: DelegateGraph) -> None:
        """Store the C view of a subgraph (`DelegateGraph`) with the context's interpreter, so that both live equally long."""
        self._contexts.add(context)
        context.resources[self._key(context)] = graph

    def _key(self, context: Context) -> tuple[str, NativeDelegate, int]:
        return "oplet_native_ops", self, id(context)

    def _graph_in(self, context: Context) -> DelegateGraph | None:
        graph: DelegateGraph | None = context.resources.get(self._key(context))
        return None if graph is None or graph.pointer is None or self.pointer is None else graph

    # Buffers ---------------------------------------------------------------------------------------------------------------

    def copy_from_buffer_handle(self, context: Context, handle: Any, tensor: Tensor) -> None:
        graph = self._graph_with(context, tensor)
        graph.give(tensor)
        self._copy("from", graph, handle, tensor)
        graph.tensor(tensor.index).data_is_stale = False
        if tensor.index in graph.dynamic:
            graph.dynamic[tensor.index].fetch(context, tensor)

    def copy_to_buffer_handle(self, context: Context, handle: Any, tensor: Tensor) -> None:
        graph = self._graph_with(context, tensor)
        graph.give(tensor)
        self._copy("to", graph, handle, tensor)

    def free_buffer_handle(self, context: Context, handle: Any) -> None:
        graph = self._graph_in(context)
        if graph is None:
            return  # the application named a buffer of a library that claims nothing here, or that has let go of all it had
        number = delegate_handle(self.name, handle)
        self._shim.oplet_native_delegate_free(self.pointer, graph.pointer, number)
        for index in range(graph.tensor_count):
            found = graph.tensor(index)
            if found.buffer_handle == number and found.delegate == self.pointer:
                found.buffer_handle, found.data_is_stale = NO_BUFFER_HANDLE, False

    def _graph_with(self, context: Context, tensor: Tensor) -> DelegateGraph:
        graph = self._graph_in(context)
        if graph is None:
            raise DelegateError(f"{self.name} has no buffers of {tensor}: it claims nothing of this model.")
        return graph

    def _copy(self, way: str, graph: DelegateGraph, handle: Any, tensor: Tensor) -> None:
        number = delegate_handle(self.name, handle)
        function = getattr(self._shim, f"oplet_native_delegate_copy_{way}")
        status = function(self.pointer, graph.pointer, number, tensor.index)
        if status:
            raise DelegateError(
                f"{self.name} cannot copy the data of {tensor} {way} its buffer {number}: {_reason(graph, status)}"
            )


def _reason(graph: DelegateGraph, status: int) -> str:
    return graph.error or f"it answers with {Status.NAMES.get(status, f'status {status}')} and without a reason."
