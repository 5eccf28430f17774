"""Entries of resolvers, and the keys of ops under which they are found."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from oplet.errors import ResolverError, failures, text_of
from oplet.ops.composite import Composite
from oplet.ops.custom_prefix import CustomPrefix
from oplet.ops.serving.node_limits import NodeLimits
from oplet.ops.serving.registration import Provenance, Registration
from oplet.records import Record
from oplet.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from oplet.ops.serving.type_limits import TypeLimit

__all__ = ["Op", "ResolverEntry", "check_methods", "op_key", "op_label"]

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
