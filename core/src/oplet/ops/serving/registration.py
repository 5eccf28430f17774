"""Registrations: the methods that serve an operator, as LiteRT's TfLiteRegistration, and the entries of resolvers."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from oplet.errors import ResolverError, failures, text_of
from oplet.ops.context import Context, decline
from oplet.ops.node import Node, Thunk
from oplet.ops.serving.node_limits import NodeLimits
from oplet.ops.serving.provenance import Composite, CustomPrefix, Provenance
from oplet.ops.tensor import Array, Tensor
from oplet.records import Record
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = [
    "REBUILD",
    "Composite",
    "CustomPrefix",
    "Op",
    "Provenance",
    "Registration",
    "ResolverEntry",
    "Thunk",
    "TypeLimit",
    "check_methods",
    "op_key",
    "op_label",
]

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
        fuses: `fuses(node, makers) -> nodes`: which of the pure nodes that make its inputs, and whose outputs nothing else reads, it
            computes itself (`oplet.ops.serving.joining`). Such a node has them as its `absorbed` when it is prepared, and not where
            `prepare` refused it with them. Their outputs have no memory then.
        speculative: whether a node with fused ones is prepared for a shape that only the run confirms; its thunk raises
            `StalePlanError` where it is another. Such a node fuses `absorbable` nodes only, in graphs that can be run again from the start.
        absorbable: whether a `speculative` kernel of another node may compute the node from its inputs and options; of pure ones.
        sparse: positions of inputs whose constants may be sparse. Their `tensor.data` has the stored values, in one dimension, and
            `tensor.sparsity` their places.
        expands: `expands(source, output) -> write`: how a node with one constant input, and one output of its shape, is computed without
            `prepare`: `write(stored, values)` computes the array of the output from that of the input. None for tensors that have to be
            prepared. `bind` serves such a node unprepared, too, where its value is computed again. For kernels of many small weights.
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
    fuses: Callable[[Node, Sequence[Node]], Sequence[Node]] | None = None
    speculative: bool = False
    absorbable: bool = False
    sparse: frozenset[int] = frozenset()
    expands: Callable[[Tensor, Tensor], Callable[[Array, Array], object] | None] | None = None
    types: tuple[TensorType, ...] = ()
    limits: NodeLimits | None = None
    decomposes: bool = False
    differences: str = ""
    remark: Callable[[Node, bool], str] | None = None
    library: str = ""
    provenance: Provenance = _APPLICATION

    def __replace__(self, **changes: Any) -> Registration:
        # Another `prepare` may refuse or decline what `expands` would compute without asking it.
        return super().__replace__(**({"expands": None, **changes} if "prepare" in changes else changes))

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


_METHODS = ("init", "free", "prepare", "bind", "invoke", "async_kernel", "profiling_string")

#: A built-in operator's code, a custom op's name, a family of custom ops, or a composite.
Op = BuiltinOperator | str | Composite | CustomPrefix


#: The precision of entries that name a single op.
_SINGLE = 1 << 30


def op_key(op: Op | int) -> Op:
    """Return the key of an op in resolvers: a built-in operator's code, a custom op's name, a family of custom ops, or a
    composite.

    Raises:
        ResolverError: the number is not a built-in operator's, or the name is empty.
    """
    if type(op) is BuiltinOperator:
        return op
    if isinstance(op, Composite):
        if not isinstance(op.name, str) or not op.name:
            raise ResolverError(f"A composite is called {op.name!r}; give the name that the model's composite has.")
        return op
    if isinstance(op, CustomPrefix):
        if not isinstance(op.prefix, str) or not op.prefix:
            raise ResolverError(
                f"A family of custom ops has the prefix {op.prefix!r}; give what the names of its ops begin with."
            )
        return op
    if isinstance(op, str):
        if not op:
            raise ResolverError("An op has an empty name; give the name that the model's custom_code has.")
        return op
    try:
        return BuiltinOperator(op)
    except ValueError:
        raise ResolverError(
            f"Op builtin_code out of range: {op}. The highest that this schema knows is {max(BuiltinOperator)}."
        ) from None


def op_label(op: Op) -> str:
    """Return the name of an op for messages and tables."""
    return op if isinstance(op, str) else op.name


class ResolverEntry(Record):
    """An entry of a resolver: the registration that serves an op in a range of versions.

    Attributes:
        op: the op.
        min_version: the first version.
        max_version: the last version.
        target: the registration, or the "module:NAME" from which it is imported when it is needed.
        provenance: the origin of the entry.
        limit: the tensor types that are served; None for all that the registration serves.
        family: the family (names with one prefix) by which a custom op is served; None if it is served by its own name.
    """

    op: Op
    min_version: int
    max_version: int
    target: Registration | str
    provenance: Provenance
    limit: TypeLimit | None = None
    family: CustomPrefix | None = None

    def serving(self, name: str) -> ResolverEntry:
        """Return the entry as one of the op `name` if it is an entry of a family of custom ops (by prefix); else return it unchanged."""
        return self.__replace__(op=name, family=self.op) if isinstance(self.op, CustomPrefix) else self

    @property
    def precision(self) -> int:
        """Sort key of precedence: an entry of a single op precedes those of families (prefixes), a longer prefix a shorter one."""
        return _SINGLE if self.family is None else len(self.family.prefix)

    def load(self, version: int) -> Registration:
        """Return the registration, imported if necessary, with its op, version and package filled in.

        Raises:
            ResolverError: the module or name does not exist, or it is not a registration.
        """
        target = self.target
        if isinstance(target, str):
            target = _import(target, self)
            check_methods(target, f"{op_label(self.op)}, which {self.provenance} registered,")
        if self.limit is not None:
            target = self.limit.__replace__(build=self.limit.build or str(self.provenance)).applied_to(target)
        return target.stamped(self.op, version, self.provenance)


def _import(path: str, entry: ResolverEntry) -> Registration:
    module, _, name = path.partition(":")
    try:
        target = getattr(importlib.import_module(module), name or "REGISTRATION")
    except failures() as error:  # importing runs code of other packages
        raise ResolverError(
            f"The kernel of {op_label(entry.op)} cannot be imported from '{path}', which {entry.provenance} registered: "
            f"{text_of(error, named=True)}; upgrade or uninstall that package."
        ) from error
    if not isinstance(target, Registration):
        raise ResolverError(
            f"'{path}', which {entry.provenance} registered for {op_label(entry.op)}, is a {type(target).__name__}, "
            "not a Registration; report it to that package."
        )
    return target


def check_methods(registration: Registration, what: str) -> None:
    for name in _METHODS:
        method = getattr(registration, name)
        if method is not None and not callable(method):
            raise ResolverError(f"The registration of {what} has {method!r} as {name}, which cannot be called.")
    limits: object = registration.limits
    if limits is not None and not isinstance(limits, NodeLimits):
        raise ResolverError(f"The registration of {what} has {limits!r} as limits, which are no NodeLimits.")
    if registration.invoke is None and registration.bind is None:
        raise ResolverError(f"The registration of {what} has neither invoke nor bind, so it cannot run.")


#: The advice for a type that a build does not contain.
REBUILD = "rebuild with `oplet build` including a model of that type, or install oplet-builtin-ops"


class TypeLimit(Record):
    """The tensor types that a build, a package with a part of the kernels, serves.

    Attributes:
        types: the types that nodes may read and write.
        build: the build's name in messages, "my_app_ops 1.0".
        remedy: the advice in messages; "" for the default, to build again.
    """

    types: tuple[TensorType, ...]
    build: str = ""
    remedy: str = ""

    def check(self, node: Node) -> None:
        """Decline a node that reads or writes a tensor of another type.

        Raises:
            Declined: it does; the message names the tensor, the build and the remedy.
        """
        for tensor in (*node.inputs, *node.outputs):
            if tensor is not None and tensor.type not in self.types:
                name = node.composite_name or node.op_name
                build = f"{name} of {self.build}" if self.build else name
                names = ", ".join(type.name for type in sorted({*self.types}))
                decline(f"{build} was built for {names} only, and {tensor} is {tensor.type.name}; {self.remedy or REBUILD}.")

    def applied_to(self, registration: Registration) -> Registration:
        """Return a copy of the registration that declines nodes which read or write tensors of other types; itself if there are no types.

        Examples:
            >>> from oplet import Registration, TensorType
            >>> TypeLimit((TensorType.INT8,), "my_app_ops 1.0").applied_to(Registration(invoke=lambda context, node: None)).types
            (<TensorType.INT8: 9>,)
        """
        if not self.types:
            return registration
        inner = registration.prepare

        def prepare(context: Context, node: Node) -> None:
            self.check(node)
            if inner is not None:
                inner(context, node)

        kept = tuple(type for type in registration.types if type in self.types)
        return registration.__replace__(prepare=prepare, types=kept or self.types)
