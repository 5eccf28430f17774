"""The resolver that merges what the plugins bring: a plugin beats a builtin, two plugins need a choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from oplet.errors import OpConflictError
from oplet.ops.composite import Composite
from oplet.ops.serving.registration import Provenance, Registration
from oplet.ops.serving.resolver import MutableOpResolver, Op, OpResolver, ResolverEntry, op_key, op_label
from oplet.plugins.selection import PREFER_VARIABLE, Preference, normalised
from oplet.schema.enums import BuiltinOperator

__all__ = ["MergedResolver", "PluginOps"]


@dataclass(frozen=True)
class PluginOps:
    """What one plugin brings.

    Attributes:
        names: the names that the plugin answers to.
        rank: its tier; the higher goes before the lower.
        resolver: its ops.
    """

    names: frozenset[str]
    rank: int
    resolver: MutableOpResolver


@dataclass(frozen=True)
class _ConflictEntry(ResolverEntry):
    """An entry for versions of an op that several plugins claim: loading it is the error that names them."""

    error: str = ""

    def load(self, version: int) -> Registration:
        raise OpConflictError(self.error)


@dataclass(frozen=True)
class _Choice:
    entry: ResolverEntry | None
    why: str


class MergedResolver(OpResolver):
    """Finds an op among the plugins; what it found, it remembers.

    Args:
        sources: the plugins, in the order in which messages name them.
        preference: which to take where several could serve.
    """

    def __init__(self, sources: Sequence[PluginOps], preference: Preference = Preference()) -> None:  # noqa: B008 (frozen)
        self._sources = tuple(sources)
        self._preference = preference
        self._choices: dict[tuple[Op, int], _Choice] = {}
        self._loaded: dict[tuple[Op, int], Registration] = {}

    def find_op(self, op: BuiltinOperator | int | str | Composite, version: int) -> Registration | None:
        """The registration that serves `op` in this version, or None.

        Raises:
            OpConflictError: several plugins claim it and nothing says which to take.
            ResolverError: its kernel cannot be imported.
        """
        key = op_key(op), version
        found = self._loaded.get(key)
        if found is None and (entry := self._choose(*key).entry) is not None:
            found = self._loaded[key] = entry.load(version)
        return found

    def candidates(self, op: BuiltinOperator | int | str | Composite, version: int) -> Iterator[Registration]:
        found = self.find_op(op, version)
        if found is not None:
            yield found
            for entry in islice(self.in_order(op, version), 1, None):
                yield entry.load(version)

    def in_order(self, op: BuiltinOperator | int | str | Composite, version: int) -> Iterator[ResolverEntry]:
        """The entries for `op` in this version, the one that serves it first, then who is asked if that one declines.

        Where several plugins are next and nothing says which to take, the last entry is one whose `load` is the error.
        """
        key = op_key(op)
        offers = self._offers(key, version)
        while offers:
            taken = self._compare(key, version, offers).entry
            if taken is None:
                return
            yield taken
            source = next((source for source, entry in offers if entry is taken), None)
            if source is None:  # a conflict
                return
            yield from source.resolver.fallbacks(key, version)
            offers = [offer for offer in offers if offer[0] is not source]

    def is_preferred(self, op: BuiltinOperator | int | str | Composite, entry: ResolverEntry) -> bool:
        """Whether a preference names the plugin that makes this claim, for this op or for all."""
        names = {normalised(entry.provenance.plugin), normalised(entry.provenance.distribution)}
        return not names.isdisjoint(self._preference.for_op(op_label(op_key(op))))

    def why(self, op: BuiltinOperator | int | str | Composite, version: int) -> str:
        return self._choose(op_key(op), version).why

    def entries(self, op: BuiltinOperator | int | str | Composite | None = None) -> Iterator[ResolverEntry]:
        """The winning entries, cut into ranges of versions that one plugin serves."""
        if op is not None:
            return self._ranges(op_key(op))
        ops = dict.fromkeys(entry.op for source in self._sources for entry in source.resolver.entries())
        return (entry for each in ops for entry in self._ranges(each))

    def _ranges(self, op: Op) -> Iterator[ResolverEntry]:
        current: ResolverEntry | None = None
        for version in sorted({v for source in self._sources for v in source.resolver.versions(op)}):
            entry = self._choose(op, version).entry
            if entry is None:
                continue
            entry = replace(entry, min_version=version, max_version=version)
            if current is not None and replace(current, min_version=version, max_version=version) == entry:
                current = replace(current, max_version=version)
                continue
            if current is not None:
                yield current
            current = entry
        if current is not None:
            yield current

    def _choose(self, op: Op, version: int) -> _Choice:
        key = op, version
        choice = self._choices.get(key)
        if choice is None:
            choice = self._choices[key] = self._compare(op, version, self._offers(op, version))
        return choice

    def _offers(self, op: Op, version: int) -> list[tuple[PluginOps, ResolverEntry]]:
        return [(source, entry) for source in self._sources if (entry := source.resolver.entry_of(op, version))]

    def _compare(self, op: Op, version: int, offers: Sequence[tuple[PluginOps, ResolverEntry]]) -> _Choice:
        if not offers:
            return _Choice(None, self._absence(op))
        best = next(
            (named for name in self._preference.for_op(op_label(op)) if (named := [o for o in offers if name in o[0].names])),
            None,
        )
        verb = "preferred over"
        if best is None:
            top = max(source.rank for source, _ in offers)
            best = [offer for offer in offers if offer[0].rank == top]
            verb = "overrides"
        if len(best) > 1:
            return _conflict(op, version, best)
        [(source, entry)] = best
        losers = [str(other.provenance) for of, other in offers if of is not source]
        return _Choice(entry, f"{verb} {', '.join(losers)}" if losers else "only provider")

    def _absence(self, op: Op) -> str:
        served = [(s.resolver.provenance, s.resolver.versions(op)) for s in self._sources]
        others = [f"{who} serves up to version {versions[-1]}" for who, versions in served if versions]
        return ", ".join(others) or "nobody registered it"


def _conflict(op: Op, version: int, offers: Sequence[tuple[PluginOps, ResolverEntry]]) -> _Choice:
    rivals = [entry.provenance for _, entry in offers]
    names = " and ".join(map(str, rivals))
    several_packages = len({r.distribution for r in rivals}) == len(rivals)
    first = rivals[0].distribution if several_packages and rivals[0].distribution else rivals[0].plugin
    if not several_packages:
        names = " and ".join(f"plugin '{r.plugin}' of {r}" for r in rivals)
    error = (
        f"{op_label(op)} version {version} is claimed by {names}; choose with prefer=[{first!r}], with "
        f"{PREFER_VARIABLE}={first} in the environment, or switch one off with -p no:{rivals[-1].plugin}."
    )
    entry = _ConflictEntry(op, version, version, "", Provenance(plugin=f"conflict of {names}"), error=error)
    return _Choice(entry, f"claimed by {names}: choose with prefer=")
