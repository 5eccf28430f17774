"""Registrations: the methods that serve an operator, as LiteRT's TfLiteRegistration."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from oplet.ops.composite import Composite
from oplet.ops.context import Context
from oplet.ops.custom_prefix import CustomPrefix
from oplet.ops.node import Node, Thunk
from oplet.ops.serving.node_limits import NodeLimits
from oplet.ops.serving.provenance import Provenance
from oplet.records import Record
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["Provenance", "Registration", "Thunk"]


#: Provenance of registrations that the application made.
_APPLICATION = Provenance()


class Registration(Record):
    """The identity and the methods of an op. One of `invoke` and `bind` is required, all others are optional.

    Attributes:
        builtin_code: the built-in operator; the resolver fills it in.
        custom_name: the name of a custom op or of a composite; the resolver fills it in.
        version: the version that it serves; the resolver fills it in.
        init: `init(context, buffer) -> user_data`, called once per node when the model is loaded, or when the node is first given to
            this registration. `buffer` is the custom options as bytes, or the options table of a built-in operator.
        free: `free(context, user_data)`, called once for each `init`, also after a failure.
        prepare: `prepare(context, node)`, called whenever inputs were resized: checks shapes and types, sets the outputs' shapes,
            requests temporaries.
        bind: `bind(context, node) -> thunk`, called when the tensors have their memory; the thunk runs the node, with its arrays,
            views and constants already looked up.
        invoke: `invoke(context, node)`, called at each run, for ops without `bind`.
        async_kernel: `async_kernel(context, node) -> oplet.AsyncKernel`, the asynchronous form of a delegate's kernel.
        profiling_string: `profiling_string(context, node) -> str`, the label by which profiles group nodes.
        user_data: a value that the methods share; of the registration, not of a node.
        pure: whether the outputs depend only on the inputs; a node with constant inputs then runs once, when the graph is prepared.
        absorbs: `absorbs(node, makers) -> nodes`: which of the nodes that make its inputs, and whose outputs nothing else reads, it
            computes itself (`oplet.ops.serving.absorbing`). Such a node has them as its `absorbed` when it is prepared, and not where
            `prepare` refused it with them. Their outputs have no memory then.
        fuses: `fuses(node, makers) -> nodes`, like `absorbs` but only for speed: which of these pure nodes, `absorbable` or not,
            it computes itself. All shapes are what they are without it, and its thunk raises no `UnforeseenShapeError`.
        absorbable: whether a kernel of another node may absorb the node: compute it from its inputs and options; of pure ones.
        sparse: positions of inputs whose constants may be sparse. Their `tensor.data` has the stored values, in one dimension, and
            `tensor.sparsity` their places.
        types: the element types of its main inputs, for documentation and for builds that select by type; empty for any.
        limits: the nodes that it serves; others go to the next kernel, and neither `init` nor `prepare` is called for them. None
            for no limits (see also `decline`).
        decomposes: whether it runs a composite by its decomposition; the runtime may then put the decomposition's nodes in the place of
            the node, so that delegates see them. Of STABLEHLO_COMPOSITE alone.
        differences: one sentence on how its results differ from LiteRT's; "" where they do not.
        remark: `remark(node, default_delegates) -> str`: what `explain()` adds on how the kernel computes a node, "" for nothing;
            `default_delegates` is that of the kernel's context.
        library: the path of the compiled library that its methods call, "" if there is none; reports show its name, and locks and
            builds include it.
        provenance: the package that it comes from; the resolver fills it in.
    """

    builtin_code: BuiltinOperator = BuiltinOperator.CUSTOM
    custom_name: str = ""
    version: int = 1
    init: Callable[[Context, Any], Any] | None = None
    free: Callable[[Context, Any], None] | None = None
    prepare: Callable[[Context, Node], None] | None = None
    bind: Callable[[Context, Node], Thunk] | None = None
    invoke: Callable[[Context, Node], None] | None = None
    async_kernel: Callable[[Context, Node], object | None] | None = None
    profiling_string: Callable[[Context, Node], str] | None = None
    user_data: Any = None
    pure: bool = False
    absorbs: Callable[[Node, Sequence[Node]], Sequence[Node]] | None = None
    fuses: Callable[[Node, Sequence[Node]], Sequence[Node]] | None = None
    absorbable: bool = False
    sparse: frozenset[int] = frozenset()
    types: tuple[TensorType, ...] = ()
    limits: NodeLimits | None = None
    decomposes: bool = False
    differences: str = ""
    remark: Callable[[Node, bool], str] | None = None
    library: str = ""
    provenance: Provenance = _APPLICATION

    @property
    def name(self) -> str:
        """The op's name: a built-in operator's own, a custom op's or a composite's."""
        return self.custom_name or self.builtin_code.name

    @property
    def source(self) -> str:
        """Package that serves the op, and the compiled library if it has one, as reports show them."""
        return f"{self.provenance} ({os.path.basename(self.library)})" if self.library else str(self.provenance)

    def stamped(self, op: BuiltinOperator | str | Composite | CustomPrefix, version: int, provenance: Provenance) -> Registration:
        """Return a copy with the op, version and package under which a resolver serves it."""
        if isinstance(op, Composite):
            code = BuiltinOperator.STABLEHLO_COMPOSITE
            return self.__replace__(builtin_code=code, custom_name=op.name, version=version, provenance=provenance)
        if isinstance(op, (str, CustomPrefix)):
            return self.__replace__(custom_name=str(op), version=version, provenance=provenance)
        return self.__replace__(builtin_code=op, version=version, provenance=provenance)
