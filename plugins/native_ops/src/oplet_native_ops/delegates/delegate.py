"""A delegate created by a shared library.

Creation of a library's delegate, with sanity checks of its struct.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Mapping
from typing import Any

from oplet import Context, Delegate, DelegateContext, DelegateFlags, Tensor
from oplet.errors import DelegateError
from oplet_native_ops.delegates.claim import Claim
from oplet_native_ops.delegates.graph import DelegateGraph
from oplet_native_ops.delegates.kernel import delegate_handle
from oplet_native_ops.delegates.shared import Shared
from oplet_native_ops.shim.layouts import NO_BUFFER_HANDLE, Address, Status
from oplet_native_ops.shim.library import shim
from oplet_native_ops.shim.memory import Mappings, word
from oplet_native_ops.shim.opening import NativeLibrary, open_library

__all__ = ["NativeDelegate", "load_delegate_library"]

_CREATE, _DESTROY = "tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"
_REPORT = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
#: Bytes of a TfLiteDelegate whose last field is not there yet in libraries of TensorFlow before 2.11, and of an opaque one.
_STRUCT_BYTES, _BUILDER_BYTES, _BUILDER_AT = 48, 48, 48
_METHODS = ("Prepare", "CopyFromBufferHandle", "CopyToBufferHandle", "FreeBufferHandle")


def create_delegate(library: NativeLibrary, options: Mapping[str, str]) -> int:
    """Call `tflite_plugin_create_delegate`; return the delegate's address.

    Raises:
        DelegateError: the library has no such function, or it returns null or a pointer to something that is no delegate.
    """
    if _CREATE not in library.info.functions:
        raise DelegateError(
            f"{library.name} exports no {_CREATE}, so it is no delegate library; libraries of operators are for load_ops."
        )
    for text in (*options, *options.values()):
        if "\0" in text:
            raise DelegateError(f"The option {text!r} has a null character in it, where C would see its end.")
    create = getattr(library.functions, _CREATE)
    texts = ctypes.POINTER(ctypes.c_char_p)
    create.restype, create.argtypes = Address, [texts, texts, ctypes.c_size_t, _REPORT]
    said: list[str] = []
    keys, values = (
        (ctypes.c_char_p * len(options))(*(text.encode("utf-8", "surrogateescape") for text in group))
        for group in (options, options.values())
    )
    report = _REPORT(lambda text: said.append((text or b"").decode("utf-8", "replace").strip()))
    pointer = create(keys, values, len(options), report)
    if not pointer:
        reason = "; ".join(filter(None, said)) or "it does not say why"
        raise DelegateError(f"{library.name} makes no delegate with the options {dict(options)}: {reason}.")
    _check(int(pointer), library.name)
    return int(pointer)


def destroy_delegate(library: NativeLibrary, pointer: int) -> None:
    """Call `tflite_plugin_destroy_delegate`, if the library exports it."""
    if _DESTROY in library.info.functions:
        destroy = getattr(library.functions, _DESTROY)
        destroy.restype, destroy.argtypes = None, [Address]
        destroy(pointer)


def _check(pointer: int, name: str) -> None:
    mapped = Mappings()
    if not mapped.has(pointer, _STRUCT_BYTES, "r"):
        raise DelegateError(f"{name} makes a delegate at {pointer:#x}, where the program has no memory.")
    at, methods = pointer, _METHODS
    if not word(pointer + 8):  # no Prepare of its own: the opaque interface
        builder = word(pointer + _BUILDER_AT) if mapped.has(pointer + _BUILDER_AT, 8, "r") else 0
        if not builder:
            raise DelegateError(f"The delegate that {name} makes has no Prepare, so it cannot claim anything.")
        if not mapped.has(builder, _BUILDER_BYTES, "r"):
            raise DelegateError(
                f"The delegate that {name} makes has its functions at {builder:#x}, where the program has no memory."
            )
        at = builder
        if not word(builder + 8):
            raise DelegateError(f"The delegate that {name} makes has no Prepare, so it cannot claim anything.")
    for i, method in enumerate(methods):
        address = word(at + 8 + 8 * i)
        if address and not mapped.has(address, 1, "x"):
            raise DelegateError(f"What {name} makes is no delegate: its {method} is no function.")


def is_opaque(pointer: int) -> bool:
    """Return whether a delegate has the opaque interface (TfLiteOpaqueDelegate)."""
    return bool(shim().oplet_native_delegate_is_opaque(pointer))


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
