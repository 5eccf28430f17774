"""Resolvers: they find the registration that serves an operator in a version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from oplet.errors import ResolverError
from oplet.ops.serving.provenance import Composite, CustomPrefix, Provenance
from oplet.ops.serving.registration import Op, Registration, ResolverEntry, check_methods, op_key, op_label
from oplet.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from oplet.ops.serving.registration import TypeLimit

__all__ = ["ChainOpResolver", "MutableOpResolver", "OpResolver"]

#: The highest version of an op.
_NEWEST = 9999


class OpResolver:
    """Base of resolvers, which find the registrations of ops."""

    def find_op(self, op: Op | int, version: int) -> Registration | None:
        """Return the registration that serves `op` in exactly this version; None if there is none.

        Args:
            op: a built-in operator's code, a custom op's name, a composite, or a family of custom ops.
            version: the version that the model requires.
        """
        raise NotImplementedError

    def find_composite(self, name: str, version: int = 0) -> Registration | None:
        """Return the registration that serves the composite of this name in exactly this version; None if there is none."""
        return self.find_op(Composite(name), version)

    def candidates(self, op: Op | int, version: int) -> Iterator[Registration]:
        """Yield the registration that `find_op` returns, then those that are tried where it declines a node; each is loaded when
        it is its turn.

        Raises:
            OpConflictError: several plugins are next in order, and no preference decides.
            ResolverError: a kernel cannot be imported.
        """
        found = self.find_op(op, version)
        if found is not None:
            yield found

    def entries(self, op: Op | int | None = None) -> Iterator[ResolverEntry]:
        """Return all entries, or those of one op, in the order of registration."""
        raise NotImplementedError

    def in_order(self, op: Op | int, version: int) -> Iterator[ResolverEntry]:
        """Return the entries for `op` in this version, in the order in which their kernels are tried for a node."""
        return (entry for entry in self.entries(op) if entry.min_version <= version <= entry.max_version)

    def versions(self, op: Op | int) -> list[int]:
        """Return the versions in which an op is served, ascending."""
        served: set[int] = set()
        for entry in self.entries(op):
            served.update(range(entry.min_version, entry.max_version + 1))
        return sorted(served)

    def why(self, op: Op | int, version: int) -> str:
        """Return the reason for the result of `find_op` in a few words, for `explain()`."""
        return "registered" if self.find_op(op, version) else "nobody registered it"


class MutableOpResolver(OpResolver):
    """A resolver to which registrations are added; a later one replaces an earlier one of the same op and version.

    Examples:
        >>> from oplet import MutableOpResolver, Registration
        >>> resolver = MutableOpResolver()
        >>> resolver.add_custom("Twice", Registration(invoke=lambda context, node: None))
        >>> resolver.find_op("Twice", 1).name
        'Twice'
    """

    def __init__(self, provenance: Provenance | None = None) -> None:
        self.provenance = provenance or Provenance()
        self._entries: list[ResolverEntry] = []
        self._by_op: dict[Op, list[ResolverEntry]] = {}  # the same; the last one for a version serves it
        self._fallbacks: dict[tuple[Op, int], list[ResolverEntry]] = {}
        self._loaded: dict[tuple[Op, int], Registration] = {}
        self._prefixes: list[CustomPrefix] = []  # the longest first

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
        """Serve a custom op, by its name in models, in the versions `min_version` to `max_version`; see `add_builtin`.

        Raises:
            ResolverError: the name is empty, the range is empty, or the registration is invalid.
        """
        if not isinstance(name, str):
            raise ResolverError(f"A custom op is registered under {name!r}, which is not a name.")
        self._add(op_key(name), registration, min_version, max_version, limit, fallback)

    def add_custom_prefix(
        self,
        prefix: str,
        registration: Registration | str,
        min_version: int = 1,
        max_version: int | None = None,
        *,
        limit: TypeLimit | None = None,
        fallback: bool = False,
    ) -> None:
        """Serve a family of custom ops, all those whose names begin with `prefix`; see `add_builtin` for the other arguments.

        A registration of a single op goes before those of its families, and that of a longer prefix before that of a shorter one, whichever
        packages they come from; where one declines a node, the next one is asked. The kernel finds the op's name in `node.op_name`.

        Raises:
            ResolverError: the prefix is empty, the range is empty, or the registration is invalid.
        """
        self._add(op_key(CustomPrefix(prefix)), registration, min_version, max_version, limit, fallback)

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
        """Serve a composite, by its name in models; the other arguments are those of `add_builtin`, but versions start at 0.

        The kernel runs in place of the composite's decomposition, a subgraph of the model. Where it declines a node (see
        `decline`), or a tensor has a type that `limit` excludes, the next kernel of the composite is tried; if all decline, the
        decomposition runs.

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
        first = 0 if isinstance(op, Composite) else 1  # converters number the versions of composites from 0
        if not all(isinstance(version, int) and version <= _NEWEST for version in (min_version, max_version)):
            raise ResolverError(
                f"{op_label(op)} is registered for versions {min_version!r} to {max_version!r}; versions are numbers from {first} to {_NEWEST}."
            )
        if not first <= min_version <= max_version:
            raise ResolverError(
                f"{op_label(op)} is registered for versions {min_version} to {max_version}; versions start at {first} and the range must not be empty."
            )
        if isinstance(registration, Registration):
            check_methods(registration, op_label(op))
        elif not isinstance(registration, str) or not registration.partition(":")[0]:
            raise ResolverError(
                f"{op_label(op)} is registered with {registration!r}, which is neither a Registration nor 'module:NAME'."
            )
        self._put(ResolverEntry(op, min_version, max_version, registration, self.provenance, limit, None), fallback)

    def _put(self, entry: ResolverEntry, fallback: bool = False) -> None:
        versions = range(entry.min_version, entry.max_version + 1)
        if fallback:
            for version in versions:
                one = entry.__replace__(min_version=version, max_version=version)
                if self._newest(entry.op, version) is not None:
                    self._fallbacks.setdefault((entry.op, version), []).append(one)
                else:
                    self._put(one)
            return
        self._entries.append(entry)
        self._by_op.setdefault(entry.op, []).append(entry)
        if isinstance(entry.op, CustomPrefix):
            self._prefixes = sorted({*self._prefixes, entry.op}, key=lambda key: (-len(key.prefix), key.prefix))
            self._loaded.clear()
        if self._fallbacks or self._loaded:  # neither is there while a plugin registers its ops
            for version in versions:
                self._fallbacks.pop((entry.op, version), None)
                self._loaded.pop((entry.op, version), None)

    def _newest(self, op: Op, version: int) -> ResolverEntry | None:
        """Return the last entry that was added for an op, or a family, in this version."""
        return next((each for each in reversed(self._by_op.get(op, ())) if each.min_version <= version <= each.max_version), None)

    def add_all(self, other: OpResolver, provenance: Provenance | None = None) -> None:
        """Add every entry of another resolver; they replace entries of the same op and version.

        Args:
            provenance: where the entries come from; by default each keeps its own provenance.
        """
        for entry in other.entries():
            self._put(entry if provenance is None else entry.__replace__(provenance=provenance))
        if isinstance(other, MutableOpResolver):
            for entries in other._fallbacks.values():
                for entry in entries:
                    self._put(entry if provenance is None else entry.__replace__(provenance=provenance), fallback=True)

    def find_op(self, op: Op | int, version: int) -> Registration | None:
        key = op_key(op), version
        found = self._loaded.get(key)
        if found is None and (entry := self.entry_of(*key)) is not None:
            found = self._loaded[key] = entry.load(version)
        return found

    def candidates(self, op: Op | int, version: int) -> Iterator[Registration]:
        found = self.find_op(op, version)
        if found is not None:
            yield found
            for entry in islice(self.in_order(op, version), 1, None):
                yield entry.load(version)

    def in_order(self, op: Op | int, version: int) -> Iterator[ResolverEntry]:
        for entry in self.heads(op, version):
            yield entry
            yield from self.fallbacks(entry, version)

    def heads(self, op: Op | int, version: int) -> Iterator[ResolverEntry]:
        """Yield the entry that names `op`, then those of the families (prefixes) that it belongs to, the longest first; without
        their fallbacks.
        """
        for key in self._keys(op_key(op)):
            if (entry := self._newest(key, version)) is not None:
                yield entry.serving(op) if isinstance(op, str) else entry

    def fallbacks(self, entry: ResolverEntry, version: int) -> Iterator[ResolverEntry]:
        """Return the fallback entries of an entry: if its kernel declines a node, they are tried in this order, before the next of `heads`."""
        fallbacks = self._fallbacks.get((entry.family or entry.op, version), ())
        return iter(fallbacks) if entry.family is None else (each.serving(str(entry.op)) for each in fallbacks)

    def entry_of(self, op: Op | int, version: int) -> ResolverEntry | None:
        """Return the entry that serves `op` in this version; its kernel is not imported."""
        return next(self.heads(op, version), None)

    def _keys(self, op: Op) -> Iterator[Op]:
        """Yield the keys under which entries for an op may be stored: its own, then matching prefixes, the longest first."""
        yield op
        if self._prefixes and isinstance(op, str):
            yield from (key for key in self._prefixes if op.startswith(key.prefix))

    def overridden(self) -> list[ResolverEntry]:
        """Return the entries that later ones replaced, wholly or in part, in the order of registration."""
        replaced = {
            id(entry)
            for same in self._by_op.values()
            for at, entry in enumerate(same)
            if any(each.min_version <= entry.max_version and entry.min_version <= each.max_version for each in same[at + 1 :])
        }
        return [entry for entry in self._entries if id(entry) in replaced]

    def entries(self, op: Op | int | None = None) -> Iterator[ResolverEntry]:
        kept = [
            entry
            for entry in self._entries
            if len(self._by_op[entry.op]) == 1
            or any(self._newest(entry.op, version) is entry for version in range(entry.min_version, entry.max_version + 1))
        ]
        if op is None:
            return iter(kept)
        keys = [*self._keys(op_key(op))]
        return (each.serving(op) if isinstance(op, str) else each for each in kept if each.op in keys)


class ChainOpResolver(OpResolver):
    """Several resolvers in order; the first that serves an op is used."""

    def __init__(self, resolvers: Iterable[OpResolver]) -> None:
        self.resolvers = list(resolvers)

    def find_op(self, op: Op | int, version: int) -> Registration | None:
        for resolver in self.resolvers:
            found = resolver.find_op(op, version)
            if found is not None:
                return found
        return None

    def candidates(self, op: Op | int, version: int) -> Iterator[Registration]:
        return (found for resolver in self.resolvers for found in resolver.candidates(op, version))

    def entries(self, op: Op | int | None = None) -> Iterator[ResolverEntry]:
        return (entry for resolver in self.resolvers for entry in resolver.entries(op))

    def why(self, op: Op | int, version: int) -> str:
        for resolver in self.resolvers:
            if resolver.find_op(op, version) is not None:
                return resolver.why(op, version)
        return "nobody registered it"
