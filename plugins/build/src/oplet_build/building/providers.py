"""Choice of the package that each op is cut from, where several installed packages serve it.

A build takes the first provider in the order of precedence, as an interpreter does, with two exceptions. A provider is passed over if it
cannot be cut out of its package, or if its package requires more than a later provider's and no preference names it. After a provider that
may decline nodes the next one is taken too, as in the full install.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from oplet import Interpreter, Model, OpResolver, PluginManager, Registration
from oplet.errors import OpletError, OpNotFoundError, UnresolvedOpError
from oplet.toolkit import MergedResolver, Op, Preference, ResolverEntry, normalised, op_key
from oplet_build.building.distributions import op_packages, requirements_beyond
from oplet_build.building.error import BuildError
from oplet_build.building.kernels import Kernel, Origin, kernel_of
from oplet_build.selection.declining_kernels import may_decline
from oplet_build.selection.needs import OpNeed

__all__ = ["PassedOver", "ProviderChoice", "choose_providers", "indispensable_providers", "passed_over_sentences"]


@dataclass(frozen=True)
class PassedOver:
    """A package whose kernel was not taken for an op, although it precedes the package that was."""

    op: str
    provider: str  #: The package, with its version.
    instead: str  #: The package that was taken, with its version; "" if no package was.
    reason: str  #: Why the package was not taken: the rest of a sentence that begins with its name.
    origin: Origin  #: The plugin and the op.
    preferable: str = ""  #: The package's name if the option --prefer would make the build take it, else "".

    def as_dict(self) -> dict[str, str]:
        """Return the fields as a dictionary, for JSON."""
        return {"op": self.op, "package": self.provider, "instead": self.instead, "reason": self.reason}


def passed_over_sentences(passed: Iterable[PassedOver]) -> list[str]:
    """Return sentences about packages that were passed over, though they precede the ones taken: one for each reason."""
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
class ProviderChoice:
    """The packages and kernels that a build takes for its ops."""

    kernels: list[Kernel]  #: The kernels, each `fallback` after the kernels that precede it.
    entries: list[ResolverEntry]  #: The resolver's entries of these kernels, one for each version, in order of precedence.
    passed_over: list[PassedOver]  #: The packages that precede those taken, and why they were not taken.

    def resolver(self) -> OpResolver:
        """Return a resolver with the ops of the build, which takes their kernels from the installed packages."""
        return _Entries(self.entries)


class _Entries(OpResolver):
    """A resolver of entries that have one version each; of several for an op and version the earliest is asked first."""

    def __init__(self, entries: Iterable[ResolverEntry]) -> None:
        self._entries: dict[tuple[Op, int], list[ResolverEntry]] = {}
        for entry in entries:
            self._entries.setdefault((entry.op, entry.min_version), []).append(entry)

    def find_op(self, op: Op | int, version: int) -> Registration | None:
        return next(self.candidates(op, version), None)

    def candidates(self, op: Op | int, version: int) -> Iterator[Registration]:
        return (entry.load(version) for entry in self._entries.get((op_key(op), version), ()))

    def entries(self, op: Op | int | None = None) -> Iterator[ResolverEntry]:
        key = None if op is None else op_key(op)
        return (entries[0] for (of, _), entries in self._entries.items() if key is None or of == key)


def choose_providers(
    needs: Iterable[OpNeed],
    plugins: PluginManager,
    prefer: Preference = Preference(),  # noqa: B008 (frozen)
    refused: Mapping[Origin, str] | None = None,
    costly: Iterable[Origin] = (),
) -> ProviderChoice:
    """Choose the package from which each op is extracted, in each version that is needed.

    Composites without a kernel are left out: they run as their decomposition.

    Args:
        plugins: the plugins that may have kernels for them.
        prefer: plugins to take where several have kernels for an op, whatever they require.
        refused: kernels (op and plugin) that cannot be extracted, with the reasons.
        costly: kernels (op and plugin) to take although their packages have more requirements than others with the op.

    Raises:
        OpNotFoundError, UnresolvedOpError: no package has a kernel for an op in a needed version.
        OpConflictError: several plugins have kernels for an op, and no preference decides.
        BuildError: no kernel of an op can be extracted.
    """
    infos = plugins.plugins()
    # Earlier builds are left out: the packages that they were cut from are the source. So are drafts, unfinished kernels.
    none = [info.name for info in infos if info.tier in ("selection", "draft")]
    if none:
        plugins = plugins.without(none)
    chooser = _ProviderChooser(plugins, plugins.resolver(prefer), dict(refused or {}), set(costly))
    for need in needs:
        chooser.take(need)
    return ProviderChoice(chooser.kernels, chooser.entries, list(dict.fromkeys(chooser.passed_over)))


class _ProviderChooser:
    def __init__(self, plugins: PluginManager, resolver: MergedResolver, refused: dict[Origin, str], costly: set[Origin]) -> None:
        self.kernels: list[Kernel] = []
        self.entries: list[ResolverEntry] = []
        self.passed_over: list[PassedOver] = []
        self._plugins = plugins
        self._infos = plugins.plugins()
        self._resolver = resolver
        self._refused = refused
        self._costly = costly
        self._op_packages = frozenset(map(normalised, op_packages().values()))

    def take(self, need: OpNeed) -> None:
        """Choose the kernels of one op: for each version the first, and those that are asked about nodes that it declines."""
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
        """Yield the entries and kernels that the build takes for one version, in the order in which they are asked."""
        found, unable = self._able_and_unable(need, version)
        if not found:
            if unable:
                raise BuildError(unable[0][1])
            if not need.composite:
                raise self._absent(need, version)
            return
        taken: list[tuple[ResolverEntry, Kernel]] = []
        passed_for_requirements: list[tuple[ResolverEntry, str]] = []
        for at, (entry, kernel) in enumerate(found):
            others = [other for other, _ in (*found[at + 1 :], *taken)]
            if more := self._extra_requirements(need, entry, others):
                if not taken:
                    passed_for_requirements.append((entry, more))
                continue
            taken.append((entry, kernel.as_fallback(bool(taken))))
            if not may_decline(entry):
                break
        order = list(self._resolver.in_order(need.op, version))
        self._note(need, order.index(taken[0][0]), order, unable, passed_for_requirements, taken)
        yield from taken

    def _able_and_unable(
        self, need: OpNeed, version: int
    ) -> tuple[list[tuple[ResolverEntry, Kernel]], list[tuple[ResolverEntry, str]]]:
        """Return the kernels that can be cut, in the order in which they are asked; and those that cannot, with the reasons."""
        able: list[tuple[ResolverEntry, Kernel]] = []
        unable: list[tuple[ResolverEntry, str]] = []
        for entry in self._resolver.in_order(need.op, version):
            if not entry.target:
                if able:
                    break  # a conflict between the next providers: the first ones suffice
                entry.load(version)  # raises the error that names them
            try:
                kernel = kernel_of(need, version, entry, self._infos)
                if reason := self._refused.get(kernel.origin):
                    unable.append((entry, reason))
                else:
                    able.append((entry, kernel))
            except BuildError as error:
                unable.append((entry, str(error)))
        return able, unable

    def _extra_requirements(self, need: OpNeed, entry: ResolverEntry, others: Iterable[ResolverEntry]) -> str:
        """Return, joined, requirements of this entry's package that another entry's avoids; "" if it is taken anyway."""
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
        passed_for_requirements: list[tuple[ResolverEntry, str]],
        taken: list[tuple[ResolverEntry, Kernel]],
    ) -> None:
        instead = str(taken[0][0].provenance)
        before = order[:first]
        for entry, reason in unable:
            if any(entry is each for each in before):
                self._pass(need, entry, instead, f"cannot be cut: {reason}")
            elif may_decline(taken[-1][0]):
                self._pass(need, entry, "", f"cannot be cut: {reason}")
        for entry, more in passed_for_requirements:
            self._pass(need, entry, instead, f"requires {more}", entry.provenance.distribution)

    def _pass(self, need: OpNeed, entry: ResolverEntry, instead: str, reason: str, preferable: str = "") -> None:
        self.passed_over.append(PassedOver(need.name, str(entry.provenance), instead, reason, _origin(need, entry), preferable))

    def _absent(self, need: OpNeed, version: int) -> Exception:
        version = need.versions[0] if need.versions else version
        who = f", which {need.models[0]} needs," if need.models else ""
        message = (
            f"Nothing installed serves {need.name} version {version}{who} so there is nothing to build from. "
            f"{self._plugins.advice(need.op)}"
        )
        return UnresolvedOpError(message, (need.name,)) if need.custom else OpNotFoundError(message, need.name, version)


def indispensable_providers(
    models: Sequence[Model], choice: ProviderChoice, again: Callable[[Iterable[Origin]], ProviderChoice], installed: OpResolver
) -> set[Origin]:
    """Return kernels (op and plugin) that were not taken because of their requirements, but without which a model cannot be prepared.

    Args:
        models: the models of the build.
        choice: the chosen providers.
        again: repeats the choice, taking the given kernels whatever their packages require.
        installed: a resolver of all plugins; models that it cannot prepare either are ignored.
    """
    passed_for_requirements = {each.origin for each in choice.passed_over if each.preferable}
    if not passed_for_requirements:
        return set()
    refused = [m for m in models if not _prepares(m, choice.resolver()) and _prepares(m, installed)]
    needed = set(passed_for_requirements) if refused else set()
    for origin in sorted(needed):
        fewer = again(needed - {origin}).resolver()
        if all(_prepares(model, fewer) for model in refused):
            needed.discard(origin)
    return needed


def _prepares(model: Model, resolver: OpResolver) -> bool:
    content = None if model.path else model.data if len(model.data) else model.to_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with closing(Interpreter(model.path or None, content, op_resolver=resolver, plugins=[])) as interpreter:
                interpreter.allocate_tensors()
    except OpletError:
        return False
    return True


def _origin(need: OpNeed, entry: ResolverEntry) -> Origin:
    return Origin(need.key, entry.provenance.distribution, entry.provenance.plugin)


def _append(kernels: list[Kernel], kernel: Kernel) -> None:
    """Add a kernel for one version; consecutive versions of the same kernel become one range."""
    last = kernels[-1] if kernels else None
    if last is not None and last.max_version == kernel.min_version - 1 and last.with_versions(0, 0) == kernel.with_versions(0, 0):
        kernels[-1] = last.with_versions(last.min_version, kernel.max_version)
    else:
        kernels.append(kernel)
