"""What serves an operator: its identity and its methods."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oplet.ops.composite import Composite
from oplet.ops.context import Context
from oplet.ops.node import Node, Thunk
from oplet.ops.serving.node_limits import NodeLimits
from oplet.ops.serving.provenance import Provenance
from oplet.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from oplet.ops.asynchronous.kernel import AsyncKernel

__all__ = ["Provenance", "Registration", "Thunk"]


#: Of what no package brought.
_APPLICATION = Provenance()


@dataclass(frozen=True)
class Registration:
    """The identity and the methods of an op; every method is optional but `invoke` or `bind`.

    Attributes:
        builtin_code: the built-in operator; the resolver fills it in.
        custom_name: the name of a custom op or of a composite; the resolver fills it in.
        version: the version that it serves; the resolver fills it in.
        init: `init(context, buffer) -> user_data`, once per node when the model is loaded, or when the node first comes to it. `buffer` is the bytes of a
            custom op's options, or the options table of a built-in one. None as result means "no state".
        free: `free(context, user_data)`, once per `init`, also when something failed.
        prepare: `prepare(context, node)`, whenever inputs were resized: check shapes and types, set the outputs'
            shapes, ask for temporaries.
        bind: `bind(context, node) -> thunk`, once the tensors have their memory; the thunk runs the node, with its
            arrays, views and constants already looked up.
        invoke: `invoke(context, node)`, at each run, for ops that have no `bind`.
        async_kernel: `async_kernel(context, node) -> AsyncKernel`, the asynchronous form of a delegate's kernel.
        profiling_string: `profiling_string(context, node) -> str`, a label by which a profiler groups nodes.
        user_data: anything the methods want to share; the registration's own, not a node's.
        pure: the outputs depend on nothing but the inputs, so that a node whose inputs are constant runs once, when
            the graph is prepared, and never again.
        sparse: positions of inputs whose constants may be stored sparse; `tensor.data` holds the stored values then, in one
            dimension, and `tensor.sparsity` says where they belong.
        types: element types that its main inputs may have, for documentation and for builds that select by type; empty
            where it takes any.
        limits: the nodes that it serves; others go to the next provider, and neither `init` nor `prepare` sees them. None
            where it looks for itself (see `decline`).
        differences: where its answers differ from LiteRT's, in one sentence; "" where they do not.
        library: the compiled library that its methods call, as the path of its file; "" where there is none. Reports name it, and
            locks and builds carry it.
        provenance: which package it came from; the resolver fills it in.
    """

    builtin_code: BuiltinOperator = BuiltinOperator.CUSTOM
    custom_name: str = ""
    version: int = 1
    init: Callable[[Context, Any], Any] | None = None
    free: Callable[[Context, Any], None] | None = None
    prepare: Callable[[Context, Node], None] | None = None
    bind: Callable[[Context, Node], Thunk] | None = None
    invoke: Callable[[Context, Node], None] | None = None
    async_kernel: Callable[[Context, Node], AsyncKernel | None] | None = None
    profiling_string: Callable[[Context, Node], str] | None = None
    user_data: Any = None
    pure: bool = False
    sparse: frozenset[int] = frozenset()
    types: tuple[TensorType, ...] = ()
    limits: NodeLimits | None = None
    differences: str = ""
    library: str = ""
    provenance: Provenance = _APPLICATION

    @property
    def name(self) -> str:
        """The op's name: a built-in operator's own, a custom op's or a composite's."""
        return self.custom_name or self.builtin_code.name

    @property
    def source(self) -> str:
        """Who serves it, as reports say it: its package, and the compiled library if it has one."""
        return f"{self.provenance} ({os.path.basename(self.library)})" if self.library else str(self.provenance)

    def stamped(self, op: BuiltinOperator | str | Composite, version: int, provenance: Provenance) -> Registration:
        """A copy that carries the identity under which a resolver serves it."""
        if isinstance(op, Composite):
            code = BuiltinOperator.STABLEHLO_COMPOSITE
            return replace(self, builtin_code=code, custom_name=op.name, version=version, provenance=provenance)
        if isinstance(op, str):
            return replace(self, custom_name=op, version=version, provenance=provenance)
        return replace(self, builtin_code=op, version=version, provenance=provenance)
