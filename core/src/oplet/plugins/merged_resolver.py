"""Resolver of all plugins' ops: the user's preference decides first, then the highest tier; several plugins of that tier are a
conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from oplet.errors import OpConflictError
from oplet.ops.serving.provenance import Provenance
from oplet.ops.serving.registration import Op, Registration, ResolverEntry, op_key, op_label
from oplet.ops.serving.resolver import MutableOpResolver, OpResolver
from oplet.plugins.selection import PREFER_VARIABLE, Preference, normalised
from oplet.records import Row

__all__ = ["MergedResolver", "PluginOps"]


class PluginOps(Row):
    """The ops of one plugin.

    Attributes:
        names: the names of the plugin and of its distribution, normalized.
        rank: the precedence of its tier (built-in ops, faster kernels, ...); plugins with the highest serve first.
        resolver: its ops.
    """

    names: frozenset[str]
    rank: int
    resolver: MutableOpResolver


class _ConflictEntry(ResolverEntry):
    """An entry for an op that several plugins serve with equal precedence; loading it raises the error that names them."""

    error: str = ""

    def load(self, version: int) -> Registration:
        raise OpConflictError(self.error)


class _Choice(Row):
    entry: ResolverEntry | None
    why: str


class MergedResolver(OpResolver):
    """A resolver of the ops of several plugins; results are cached.

    Args:
        plugins: the plugins, in the order in which messages name them.
        preference: the plugins to use where several serve an op.
    """

    def __init__(self, plugins: Sequence[PluginOps], preference: Preference = Preference()) -> None:  # noqa: B008 (frozen)
        self._plugins = tuple(plugins)
        self._preference = preference
        self._choices: dict[tuple[Op, int], _Choice] = {}
        self._loaded: dict[tuple[Op, int], Registration] = {}
        self._others: dict[tuple[Op, int], list[ResolverEntry | Registration]] = {}

    def find_op(self, op: Op | int, version: int) -> Registration | None:
        """Return the registration that serves `op` in this version; None if there is none.

        Raises:
            OpConflictError: several plugins serve it, and no preference decides.
            ResolverError: its kernel cannot be imported.
        """
        key = op_key(op), version
        found = self._loaded.get(key)
        if found is None and (entry := self._choose(*key).entry) is not None:
            found = self._loaded[key] = entry.load(version)
        return found

    def candidates(self, op: Op | int, version: int) -> Iterator[Registration]:
        found = self.find_op(op, version)
        if found is not None:
            yield found
            if (key := (op_key(op), version)) not in self._others:
                self._others[key] = list(islice(self.in_order(op, version), 1, None))
            others = self._others[key]
            for at, other in enumerate(others):
                if isinstance(other, ResolverEntry):
                    other = others[at] = other.load(version)
                yield other

    def in_order(self, op: Op | int, version: int) -> Iterator[ResolverEntry]:
        """Yield the entries for `op` in this version, in the order in which they are asked to serve a node.

        Where several plugins are next and no preference decides, the last entry is one whose `load` raises OpConflictError.
        """
        key = op_key(op)
        offers = self._offers(key, version)
        while offers:
            taken = self._compare(key, version, offers).entry
            if taken is None:
                return
            yield taken
            plugin = next((plugin for plugin, entry in offers if entry is taken), None)
            if plugin is None:  # a conflict
                return
            yield from plugin.resolver.fallbacks(taken, version)
            offers = [offer for offer in offers if offer[1] is not taken]

    def is_preferred(self, op: Op | int, entry: ResolverEntry) -> bool:
        """Return whether the preference names the plugin of this entry, for this op or for all."""
        names = {normalised(entry.provenance.plugin), normalised(entry.provenance.distribution)}
        return not names.isdisjoint(self._preference.for_op(op_label(op_key(op))))

    def why(self, op: Op | int, version: int) -> str:
        return self._choose(op_key(op), version).why

    def entries(self, op: Op | int | None = None) -> Iterator[ResolverEntry]:
        """Return the entries that serve each op, split into ranges of versions that one plugin serves."""
        if op is not None:
            return self._ranges(op_key(op))
        ops = dict.fromkeys(entry.op for plugin in self._plugins for entry in plugin.resolver.entries())
        return (entry for each in ops for entry in self._ranges(each))

    def _ranges(self, op: Op) -> Iterator[ResolverEntry]:
        current: ResolverEntry | None = None
        for version in sorted({v for plugin in self._plugins for v in plugin.resolver.versions(op)}):
            entry = self._choose(op, version).entry
            if entry is None:
                continue
            entry = entry.__replace__(min_version=version, max_version=version)
            if current is not None and current.__replace__(min_version=version, max_version=version) == entry:
                current = current.__replace__(max_version=version)
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
        return [(plugin, entry) for plugin in self._plugins for entry in plugin.resolver.heads(op, version)]

    def _compare(self, op: Op, version: int, offers: Sequence[tuple[PluginOps, ResolverEntry]]) -> _Choice:
        if not offers:
            return _Choice(None, self._absence(op))
        best = next(
            (named for name in self._preference.for_op(op_label(op)) if (named := [o for o in offers if name in o[0].names])),
            None,
        )
        verb = "preferred over"
        if best is None:
            best, verb = list(offers), "overrides"
        precise = max(entry.precision for _, entry in best)
        best = [offer for offer in best if offer[1].precision == precise]
        top = max(plugin.rank for plugin, _ in best)
        best = [offer for offer in best if offer[0].rank == top]
        if len(best) > 1:
            return _conflict(op, version, best)
        [(plugin, entry)] = best
        losers = [str(other.provenance) for of, other in offers if of is not plugin]
        why = f"{verb} {', '.join(losers)}" if losers else "only provider"
        return _Choice(entry, why if entry.family is None else f"{why}, of the family {entry.family}")

    def _absence(self, op: Op) -> str:
        served = [(s.resolver.provenance, s.resolver.versions(op)) for s in self._plugins]
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
