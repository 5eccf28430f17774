"""Which of several providers of an op a build is cut from.

It is the first in the order of precedence, as for an interpreter, but for two things that a build is made for: one that cannot
be cut out of its package gives way to the next, and so does one whose package requires more than a later one's, unless a
preference names it. Behind one that may decline nodes comes the next, as in the full install.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from oplet.errors import OpNotFoundError, UnresolvedOpError
from oplet.ops.composite import Composite
from oplet.ops.serving.registration import Registration
from oplet.ops.serving.resolver import Op, OpResolver, ResolverEntry, op_key
from oplet.plugins.manager import PluginManager
from oplet.plugins.merged_resolver import MergedResolver
from oplet.plugins.selection import Preference, normalised
from oplet.schema.enums import BuiltinOperator
from oplet.tools.building.error import BuildError
from oplet.tools.building.sources import Kernel, Origin, kernel_of, op_packages, requirements_beyond
from oplet.tools.selection.declining import may_decline
from oplet.tools.selection.needs import OpNeed

__all__ = ["Choice", "PassedOver", "choose", "passed_over"]


@dataclass(frozen=True)
class PassedOver:
    """A provider that goes before the one that was taken.

    Attributes:
        op: the op's name.
        provider: its package, with the version.
        instead: the package that the build took the op from, with the version; "" where nobody serves what it would have served.
        reason: why it was not taken, as the end of a sentence that begins with its name.
        origin: the plugin and the op.
        preferable: its package's name if a preference would take it, else "".
    """

    op: str
    provider: str
    instead: str
    reason: str
    origin: Origin
    preferable: str = ""

    def as_dict(self) -> dict[str, str]:
        """The same for JSON."""
        return {"op": self.op, "package": self.provider, "instead": self.instead, "reason": self.reason}


def passed_over(passed: Iterable[PassedOver]) -> list[str]:
    """Sentences on providers that were not taken, one for each reason."""
    ops: dict[tuple[str, str, str, str], dict[str, None]] = {}
    for each in passed:
        ops.setdefault((each.provider, each.instead, each.reason, each.preferable), {})[each.op] = None
    return [_sentence(" and ".join(filter(None, [", ".join([*names][:-1]), [*names][-1]])), *told) for told, names in ops.items()]


def _sentence(ops: str, provider: str, instead: str, reason: str, preferable: str) -> str:
    if not instead:
        return f"What declines nodes of {ops} has no one behind it in the build: {provider} {reason}"
    remedy = f"; --prefer {preferable} takes its kernels all the same." if preferable else ""
    return f"Cut from {instead}: {ops}; {provider}, which goes before it where it is installed, {reason}{remedy}"


@dataclass
class Choice:
    """What serves the ops of a build.

    Attributes:
        kernels: the kernels; those with `fallback` behind those that they are asked after.
        entries: the plugins' entries that they are, one for each version; those that are asked later come later.
        passed: the providers that were not taken although they go before those that were.
    """

    kernels: list[Kernel]
    entries: list[ResolverEntry]
    passed: list[PassedOver]

    def resolver(self) -> OpResolver:
        """What the build serves, out of the packages as they are installed."""
        return _Entries(self.entries)


class _Entries(OpResolver):
    """Finds an op among entries of one version each, the first of which goes first."""

    def __init__(self, entries: Iterable[ResolverEntry]) -> None:
        self._entries: dict[tuple[Op, int], list[ResolverEntry]] = {}
        for entry in entries:
            self._entries.setdefault((entry.op, entry.min_version), []).append(entry)

    def find_op(self, op: BuiltinOperator | int | str | Composite, version: int) -> Registration | None:
        return next(self.candidates(op, version), None)

    def candidates(self, op: BuiltinOperator | int | str | Composite, version: int) -> Iterator[Registration]:
        return (entry.load(version) for entry in self._entries.get((op_key(op), version), ()))

    def entries(self, op: BuiltinOperator | int | str | Composite | None = None) -> Iterator[ResolverEntry]:
        key = None if op is None else op_key(op)
        return (entries[0] for (of, _), entries in self._entries.items() if key is None or of == key)


def choose(
    needs: Iterable[OpNeed],
    plugins: PluginManager,
    prefer: Preference = Preference(),  # noqa: B008 (frozen)
    refused: Mapping[Origin, str] | None = None,
    costly: Iterable[Origin] = (),
) -> Choice:
    """Choose what serves each op in each version that is needed.

    Of composites only those that somebody serves are there; the others run as their decomposition.

    Args:
        needs: the ops.
        plugins: the plugins that may serve them.
        prefer: which plugins to take where several could serve, whatever they require.
        refused: providers that cannot be cut, with the reasons.
        costly: providers to take although their packages require more than a later one's.

    Raises:
        OpNotFoundError, UnresolvedOpError: nothing serves an op in a version that is needed.
        OpConflictError: several plugins do, and nothing says which to take.
        BuildError: nothing that serves it can be cut.
    """
    infos = plugins.plugins()
    # An earlier build is no source: the packages that it was cut from are. Neither is a kernel that is not finished.
    none = [info.name for info in infos if info.tier in ("selection", "draft")]
    if none:
        plugins = plugins.without(none)
    choosing = _Choosing(plugins, plugins.resolver(prefer), dict(refused or {}), set(costly))
    for need in needs:
        choosing.take(need)
    return Choice(choosing.kernels, choosing.entries, list(dict.fromkeys(choosing.passed)))


class _Choosing:
    def __init__(self, plugins: PluginManager, resolver: MergedResolver, refused: dict[Origin, str], costly: set[Origin]) -> None:
        self.kernels: list[Kernel] = []
        self.entries: list[ResolverEntry] = []
        self.passed: list[PassedOver] = []
        self._plugins = plugins
        self._infos = plugins.plugins()
        self._resolver = resolver
        self._refused = refused
        self._costly = costly
        self._op_packages = frozenset(map(normalised, op_packages().values()))

    def take(self, need: OpNeed) -> None:
        """Choose what serves a need: for each version one kernel, and those that are asked where it declines."""
        resolver = self._resolver
        versions = need.versions or tuple(resolver.versions(need.op))
        if not versions and not need.composite:
            raise self._absent(need, 1)
        places: list[list[Kernel]] = []
        for version in versions:
            for place, (entry, kernel) in enumerate(self._in_order(need, version)):
                self.entries.append(replace(entry, min_version=version, max_version=version))
                if place == len(places):
                    places.append([])
                _append(places[place], kernel)
        self.kernels += [kernel for place in places for kernel in place]

    def _in_order(self, need: OpNeed, version: int) -> Iterator[tuple[ResolverEntry, Kernel]]:
        """Who serves a version, and who is asked where that one declines."""
        found, unable = self._able(need, version)
        if not found:
            if unable:
                raise BuildError(unable[0][1])
            if not need.composite:
                raise self._absent(need, version)
            return
        taken: list[tuple[ResolverEntry, Kernel]] = []
        spared: list[tuple[ResolverEntry, str]] = []
        for at, (entry, kernel) in enumerate(found):
            others = [other for other, _ in (*found[at + 1 :], *taken)]
            if more := self._needless(need, entry, others):
                if not taken:
                    spared.append((entry, more))
                continue
            taken.append((entry, kernel.after(bool(taken))))
            if not may_decline(entry):
                break
        order = list(self._resolver.in_order(need.op, version))
        self._note(need, order.index(taken[0][0]), order, unable, spared, taken)
        yield from taken

    def _able(self, need: OpNeed, version: int) -> tuple[list[tuple[ResolverEntry, Kernel]], list[tuple[ResolverEntry, str]]]:
        """Those that can be cut, in order, and those that cannot, with the reasons."""
        able: list[tuple[ResolverEntry, Kernel]] = []
        unable: list[tuple[ResolverEntry, str]] = []
        for entry in self._resolver.in_order(need.op, version):
            if not entry.target:
                if able:
                    break  # several are next: nobody is
                entry.load(version)  # the error that names them
            try:
                kernel = kernel_of(need, version, entry, self._infos)
                if reason := self._refused.get(kernel.origin):
                    unable.append((entry, reason))
                else:
                    able.append((entry, kernel))
            except BuildError as error:
                unable.append((entry, str(error)))
        return able, unable

    def _needless(self, need: OpNeed, entry: ResolverEntry, others: Iterable[ResolverEntry]) -> str:
        """What a provider's package requires and another one spares, in words; "" where it is to be taken."""
        if self._resolver.is_preferred(need.op, entry) or _origin(need, entry) in self._costly:
            return ""
        more = requirements_beyond(entry.provenance.distribution, self._op_packages)
        fewest = more
        for each in others:
            less = requirements_beyond(each.provenance.distribution, self._op_packages)
            fewest = min(fewest, less, key=len) if less < more else fewest
        return ", ".join(sorted(more - fewest))

    def _note(
        self,
        need: OpNeed,
        first: int,
        order: list[ResolverEntry],
        unable: list[tuple[ResolverEntry, str]],
        spared: list[tuple[ResolverEntry, str]],
        taken: list[tuple[ResolverEntry, Kernel]],
    ) -> None:
        instead = str(taken[0][0].provenance)
        before = order[:first]
        for entry, reason in unable:
            if any(entry is each for each in before):
                self._pass(need, entry, instead, f"cannot be cut: {reason}")
            elif may_decline(taken[-1][0]):
                self._pass(need, entry, "", f"cannot be cut: {reason}")
        for entry, more in spared:
            self._pass(need, entry, instead, f"requires {more}", entry.provenance.distribution)

    def _pass(self, need: OpNeed, entry: ResolverEntry, instead: str, reason: str, preferable: str = "") -> None:
        self.passed.append(PassedOver(need.name, str(entry.provenance), instead, reason, _origin(need, entry), preferable))

    def _absent(self, need: OpNeed, version: int) -> Exception:
        version = need.versions[0] if need.versions else version
        who = f", which {need.models[0]} needs," if need.models else ""
        message = (
            f"Nothing installed serves {need.name} version {version}{who} so there is nothing to build from. "
            f"{self._plugins.advice(need.op)}"
        )
        return UnresolvedOpError(message, (need.name,)) if need.custom else OpNotFoundError(message, need.name, version)


def _origin(need: OpNeed, entry: ResolverEntry) -> Origin:
    return Origin(need.key, entry.provenance.distribution, entry.provenance.plugin)


def _append(kernels: list[Kernel], kernel: Kernel) -> None:
    """Add a kernel for one version; neighbours that are the same become one range."""
    last = kernels[-1] if kernels else None
    if last is not None and last.max_version == kernel.min_version - 1 and last.among(0, 0) == kernel.among(0, 0):
        kernels[-1] = last.among(last.min_version, kernel.max_version)
    else:
        kernels.append(kernel)
