"""Resolvers: they find the registration that serves an operator in a version."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from oplet.errors import ResolverError, failures, text_of
from oplet.ops.composite import Composite
from oplet.ops.serving.node_limits import NodeLimits
from oplet.ops.serving.registration import Provenance, Registration
from oplet.ops.serving.type_limits import TypeLimit, limited
from oplet.schema.enums import BuiltinOperator

__all__ = ["MutableOpResolver", "Op", "OpResolver", "ResolverEntry", "op_key", "op_label"]

#: The highest version of an op; entries are stored version by version.
_NEWEST = 9999

_METHODS = ("init", "free", "prepare", "bind", "invoke", "async_kernel", "profiling_string")

#: A built-in operator's code, a custom op's name, or a composite.
Op = BuiltinOperator | str | Composite


def op_key(op: BuiltinOperator | int | str | Composite) -> Op:
    """The key of an op in resolvers: a built-in operator's code, a custom op's name, or a composite.

    Raises:
        ResolverError: the number is not a built-in operator's, or the name is empty.
    """
    if type(op) is BuiltinOperator:
        return op
    if isinstance(op, Composite):
        if not isinstance(op.name, str) or not op.name:
            raise ResolverError(f"A composite is called {op.name!r}; give the name that the model's composite has.")
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
    """The name of an op in messages and tables."""
    return op if isinstance(op, str) else op.name


def _first_version(op: Op) -> int:
    """The first version of an op: converters number those of composites from 0."""
    return 0 if isinstance(op, Composite) else 1


@dataclass(frozen=True)
class ResolverEntry:
    """An entry of a resolver: the registration that serves an op in a range of versions.

    Attributes:
        op: the op.
        min_version: the first version.
        max_version: the last version.
        target: the registration, or the "module:NAME" from which it is imported when it is needed.
        provenance: the origin of the entry.
        limit: the tensor types that are served; None for all that the registration serves.
    """

    op: Op
    min_version: int
    max_version: int
    target: Registration | str
    provenance: Provenance
    limit: TypeLimit | None = None

    def load(self, version: int) -> Registration:
        """The registration, imported if necessary, with its identity in this version.

        Raises:
            ResolverError: the module or name does not exist, or it is not a registration.
        """
        target = self.target
        if isinstance(target, str):
            target = _import(target, self)
            _check_methods(target, f"{op_label(self.op)}, which {self.provenance} registered,")
        if self.limit is not None:
            target = limited(target, self.limit.types, self.limit.build or str(self.provenance), self.limit.remedy)
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


def _check_methods(registration: Registration, what: str) -> None:
    for name in _METHODS:
        method = getattr(registration, name)
        if method is not None and not callable(method):
            raise ResolverError(f"The registration of {what} has {method!r} as {name}, which cannot be called.")
    limits: object = registration.limits
    if limits is not None and not isinstance(limits, NodeLimits):
        raise ResolverError(f"The registration of {what} has {limits!r} as limits, which are no NodeLimits.")
    if registration.invoke is None and registration.bind is None:
        raise ResolverError(f"The registration of {what} has neither invoke nor bind, so it cannot run.")


class OpResolver:
    """Base of resolvers, which find the registrations of ops."""

    def find_op(self, op: BuiltinOperator | int | str | Composite, version: int) -> Registration | None:
        """The registration that serves `op` in exactly this version; None if there is none.

        Args:
            op: a built-in operator's code, a custom op's name, or a composite.
            version: the version that the model requires.
        """
        raise NotImplementedError

    def find_composite(self, name: str, version: int = 0) -> Registration | None:
        """The registration that serves the composite of this name in exactly this version; None if there is none."""
        return self.find_op(Composite(name), version)

    def candidates(self, op: BuiltinOperator | int | str | Composite, version: int) -> Iterator[Registration]:
        """The registration that `find_op` returns, then those that are asked where it declines a node; each is loaded when it is its turn.

        Raises:
            OpConflictError: several plugins are next in order, and no preference decides.
            ResolverError: a kernel cannot be imported.
        """
        found = self.find_op(op, version)
        if found is not None:
            yield found

    def entries(self, op: BuiltinOperator | int | str | Composite | None = None) -> Iterator[ResolverEntry]:
        """All entries, or those of one op, in the order of registration."""
        if type(self).claims is not OpResolver.claims:  # a resolver that was written when this method was called `claims`
            return self.claims(op)
        raise NotImplementedError

    def claims(self, op: BuiltinOperator | int | str | Composite | None = None) -> Iterator[ResolverEntry]:
        """The former name of `entries`."""
        return self.entries(op)

    def in_order(self, op: BuiltinOperator | int | str | Composite, version: int) -> Iterator[ResolverEntry]:
        """The entries for `op` in this version, in the order in which they are asked to serve a node."""
        return (entry for entry in self.entries(op) if entry.min_version <= version <= entry.max_version)

    def versions(self, op: BuiltinOperator | int | str | Composite) -> list[int]:
        """The versions in which an op is served, ascending."""
        served: set[int] = set()
        for entry in self.entries(op):
            served.update(range(entry.min_version, entry.max_version + 1))
        return sorted(served)

    def why(self, op: BuiltinOperator | int | str | Composite, version: int) -> str:
        """The reason for the result of `find_op` in a few words, for `explain()`."""
        return "registered" if self.find_op(op, version) else "nobody registered it"


class MutableOpResolver(OpResolver):
    """A resolver to which registrations are added; a later one replaces an earlier one of the same op and version.

    Example:
        >>> from oplet import MutableOpResolver, Registration
        >>> resolver = MutableOpResolver()
        >>> resolver.add_custom("Twice", Registration(invoke=lambda context, node: None))
        >>> resolver.find_op("Twice", 1).name
        'Twice'
    """

    def __init__(self, provenance: Provenance | None = None) -> None:
        self.provenance = provenance or Provenance()
        self._by_version: dict[tuple[Op, int], ResolverEntry] = {}
        self._entries: list[ResolverEntry] = []
        self._fallbacks: dict[tuple[Op, int], list[ResolverEntry]] = {}
        self._loaded: dict[tuple[Op, int], Registration] = {}

    def add_builtin(
        self,
        op: BuiltinOperator | int | str,
        registration: Registration | str,
        min_version: int = 1,
        max_version: int | None = None,
        *,
        limit: TypeLimit | None = None,
        fallback: bool = False,
    ) -> None:
        """Serve a built-in operator in the versions `min_version` to `max_version` (default: `min_version` alone).

        Args:
            op: the operator's code or its name ("CONV_2D").
            registration: a Registration, or its "module:NAME", which is imported when a model needs it.
            limit: the tensor types that its nodes may read and write; None for all that the kernel serves.
            fallback: whether to leave earlier entries in place, and serve only nodes that they decline.

        Raises:
            ResolverError: there is no such operator, the range is empty, or the registration is invalid.
        """
        if isinstance(op, str):
            if op not in BuiltinOperator.__members__:
                raise ResolverError(f"There is no built-in operator called {op!r}; use add_custom for custom ops.")
            op = BuiltinOperator[op]
        self._add(op_key(op), registration, min_version, max_version, limit, fallback)

    def add_custom(
        self,
        name: str,
        registration: Registration | str,
        min_version: int = 1,
        max_version: int | None = None,
        *,
        limit: TypeLimit | None = None,
        fallback: bool = False,
    ) -> None:
        """Serve a custom op, by its name in models; arguments as for `add_builtin`.

        Raises:
            ResolverError: the name is empty, the range is empty, or the registration is invalid.
        """
        if not isinstance(name, str):
            raise ResolverError(f"A custom op is registered under {name!r}, which is not a name.")
        self._add(op_key(name), registration, min_version, max_version, limit, fallback)

    def add_composite(
        self,
        name: str,
        registration: Registration | str,
        min_version: int = 0,
        max_version: int | None = None,
        *,
        limit: TypeLimit | None = None,
        fallback: bool = False,
    ) -> None:
        """Serve a composite, by its name in models; arguments as for `add_builtin`, except that versions start at 0.

        The kernel runs in place of the composite's decomposition, a subgraph of the model. Where it declines a node (see `decline`),
        or a tensor has a type that `limit` excludes, the next provider of the composite is asked; if all decline, the decomposition
        runs.

        Raises:
            ResolverError: the name is empty, the range is empty, or the registration is invalid.
        """
        self._add(op_key(Composite(name)), registration, min_version, max_version, limit, fallback)

    def _add(
        self,
        op: Op,
        registration: Registration | str,
        min_version: int,
        max_version: int | None,
        limit: TypeLimit | None,
        fallback: bool,
    ) -> None:
        max_version = min_version if max_version is None else max_version
        first = _first_version(op)
        if not all(isinstance(version, int) and version <= _NEWEST for version in (min_version, max_version)):
            raise ResolverError(
                f"{op_label(op)} is registered for versions {min_version!r} to {max_version!r}; versions are numbers from {first} to {_NEWEST}."
            )
        if not first <= min_version <= max_version:
            raise ResolverError(
                f"{op_label(op)} is registered for versions {min_version} to {max_version}; versions start at {first} and the range must not be empty."
            )
        if isinstance(registration, Registration):
            _check_methods(registration, op_label(op))
        elif not isinstance(registration, str) or not registration.partition(":")[0]:
            raise ResolverError(
                f"{op_label(op)} is registered with {registration!r}, which is neither a Registration nor 'module:NAME'."
            )
        self._put(ResolverEntry(op, min_version, max_version, registration, self.provenance, limit), fallback)

    def _put(self, entry: ResolverEntry, fallback: bool = False) -> None:
        versions = range(entry.min_version, entry.max_version + 1)
        if fallback:
            for version in versions:
                one = replace(entry, min_version=version, max_version=version)
                if (entry.op, version) in self._by_version:
                    self._fallbacks.setdefault((entry.op, version), []).append(one)
                else:
                    self._put(one)
            return
        self._entries.append(entry)
        for version in versions:
            self._by_version[entry.op, version] = entry
            self._fallbacks.pop((entry.op, version), None)
            self._loaded.pop((entry.op, version), None)

    def add_all(self, other: OpResolver) -> None:
        """Add every entry of another resolver, with its provenance; they replace entries of the same op and version."""
        for entry in other.entries():
            self._put(entry)
        if isinstance(other, MutableOpResolver):
            for entries in other._fallbacks.values():
                for entry in entries:
                    self._put(entry, fallback=True)

    def find_op(self, op: BuiltinOperator | int | str | Composite, version: int) -> Registration | None:
        key = op_key(op), version
        found = self._loaded.get(key)
        if found is None and (entry := self._by_version.get(key)) is not None:
            found = self._loaded[key] = entry.load(version)
        return found

    def candidates(self, op: BuiltinOperator | int | str | Composite, version: int) -> Iterator[Registration]:
        found = self.find_op(op, version)
        if found is not None:
            yield found
            for entry in self.fallbacks(op, version):
                yield entry.load(version)

    def in_order(self, op: BuiltinOperator | int | str | Composite, version: int) -> Iterator[ResolverEntry]:
        first = self.entry_of(op, version)
        return iter(() if first is None else (first, *self.fallbacks(op, version)))

    def fallbacks(self, op: BuiltinOperator | int | str | Composite, version: int) -> tuple[ResolverEntry, ...]:
        """The entries that are asked, in order, where the first one for `op` in this version declines a node."""
        return tuple(self._fallbacks.get((op_key(op), version), ()))

    def entry_of(self, op: BuiltinOperator | int | str | Composite, version: int) -> ResolverEntry | None:
        """The entry that serves `op` in this version; its kernel is not imported."""
        return self._by_version.get((op_key(op), version))

    #: The former name of `entry_of`.
    claim_of = entry_of

    def overridden(self) -> list[ResolverEntry]:
        """The entries that later ones replaced, wholly or in part, in the order of registration."""
        newer: set[tuple[Op, int]] = set()
        found = []
        for entry in reversed(self._entries):
            served = {(entry.op, version) for version in range(entry.min_version, entry.max_version + 1)}
            if served & newer:
                found.append(entry)
            newer |= served
        return found[::-1]

    def entries(self, op: BuiltinOperator | int | str | Composite | None = None) -> Iterator[ResolverEntry]:
        current = set(map(id, self._by_version.values()))
        key = None if op is None else op_key(op)
        return (c for c in self._entries if id(c) in current and (key is None or c.op == key))


class ChainOpResolver(OpResolver):
    """Several resolvers in order; the first that serves an op is used."""

    def __init__(self, resolvers: Iterable[OpResolver]) -> None:
        self.resolvers = list(resolvers)

    def find_op(self, op: BuiltinOperator | int | str | Composite, version: int) -> Registration | None:
        for resolver in self.resolvers:
            found = resolver.find_op(op, version)
            if found is not None:
                return found
        return None

    def candidates(self, op: BuiltinOperator | int | str | Composite, version: int) -> Iterator[Registration]:
        return (found for resolver in self.resolvers for found in resolver.candidates(op, version))

    def entries(self, op: BuiltinOperator | int | str | Composite | None = None) -> Iterator[ResolverEntry]:
        return (entry for resolver in self.resolvers for entry in resolver.entries(op))

    def why(self, op: BuiltinOperator | int | str | Composite, version: int) -> str:
        for resolver in self.resolvers:
            if resolver.find_op(op, version) is not None:
                return resolver.why(op, version)
        return "nobody registered it"
