"""Plugin manager: discovery of plugins, switches, and access to their ops and delegates."""

from __future__ import annotations

import functools
import os
from _thread import RLock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oplet import installed
from oplet.errors import OpConflictError, PluginError
from oplet.plugins.plugin import API_VERSION, APPLICATION_RANK, Operators, Plugin, PluginInfo, PluginOutline, note_namesakes, warn
from oplet.plugins.selection import PREFER_VARIABLE, Preference, Switches, misspelt_variables, normalised
from oplet.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from importlib_metadata import EntryPoint

    from oplet.delegates.registry import DelegateEntry, DelegateRegistry
    from oplet.ops.serving.registration import Op
    from oplet.ops.serving.work import WorkTable
    from oplet.plugins.commands import CommandRegistry
    from oplet.plugins.merged_resolver import MergedResolver, PluginOps

__all__ = ["API_VERSION", "GROUP", "PluginInfo", "PluginManager", "default_manager"]

#: The entry-point group of plugins.
GROUP = "oplet"


class PluginManager:
    """The plugins of this Python environment, or of given entry points.

    Plugins are discovered on first use, and none is imported before `resolver`, `registry` or `plugins` needs it. A plugin that fails
    is reported in one line of warning; the others keep working.

    Args:
        load: the names of the only plugins (or distributions) that may load; a name after "no:" may not load. None for the
            environment variable OPLET_PLUGINS (unset: all; empty: none; else a list with commas).
        block: the names of plugins (or distributions) that may not load, in addition to those in OPLET_DISABLE_PLUGINS.
        entry_points: the entry points of the plugins, in place of the installed ones.

    Examples:
        >>> from oplet import PluginManager
        >>> PluginManager(load=[]).resolver().find_op("Atan", 1) is None
        True
    """

    def __init__(
        self,
        load: str | Iterable[str] | None = None,
        block: str | Iterable[str] = (),
        entry_points: Iterable[EntryPoint] | None = None,
    ) -> None:
        self._switches = Switches.read(load, block, os.environ)
        self._preference = Preference.read(os.environ.get(PREFER_VARIABLE), PREFER_VARIABLE)
        self._entry_points = None if entry_points is None else tuple(entry_points)
        # Several threads may create interpreters at once. The lock is reentrant, as a plugin may use the manager while it registers.
        self._lock = RLock()
        self._resolvers: dict[Preference, MergedResolver] = {}
        self._registry: DelegateRegistry | None = None
        self._commands: CommandRegistry | None = None
        self._libraries: list[PluginOps] = []
        self._strict = False  # whether unknown names are refused

    @classmethod
    def named(cls, names: str | Iterable[str], argument: str) -> PluginManager:
        """Create a manager of the installed plugins with these names, or of all except those named after "no:".

        Args:
            names: names of plugins or of their distributions.
            argument: the name of `names` in messages.

        Raises:
            PluginError: a plugin that is to load is not installed.
        """
        manager = cls()
        manager._switches = Switches.read(names, (), os.environ, f"{argument}=")
        manager._strict = manager._switches.load_source == f"{argument}="
        if manager._strict:
            manager._found  # noqa: B018  # discover now, so that unknown names are refused here
        return manager

    def resolver(self, prefer: str | Iterable[str] | Mapping[str, str] | Preference | None = None) -> MergedResolver:
        """Return a resolver of all ops of all plugins, in which plugins take precedence over builtin ops.

        Args:
            prefer: the plugins to use where several serve an op: names of plugins or distributions, the most preferred first, or a
                mapping of op names to such names. It takes precedence over the environment variable OPLET_PREFER
                ("oplet-a,Atan=oplet-b").

        Raises:
            PluginError: `prefer` has another form.
        """
        from oplet.plugins.merged_resolver import MergedResolver, PluginOps

        preference = Preference.read(prefer).before(self._preference)
        with self._lock:
            found = self._resolvers.get(preference)
            if found is None:
                plugins = [PluginOps(p.names, p.rank, p.ops) for p in self._load_ops() if p.ops is not None]
                plugins += self._libraries
                for source, wanted in (("prefer=", Preference.read(prefer)), (PREFER_VARIABLE, self._preference)):
                    for complaint in _complaints(wanted, self._found):
                        warn("%s %s.", source, complaint)
                found = self._resolvers[preference] = MergedResolver(plugins, preference)
            return found

    def without(self, names: Iterable[str], source: str = "without=") -> PluginManager:
        """Return a manager of the same plugins without those named, and with the same libraries of operators.

        Args:
            names: names of plugins or of their distributions.
            source: a prefix of each name in messages that says where it was given.
        """
        manager = PluginManager(entry_points=self._entry_points)
        more = dict.fromkeys(map(normalised, names), source)
        manager._switches = self._switches._replace(block={**self._switches.block, **more})
        manager._libraries = [*self._libraries]
        return manager

    def recipe(self) -> dict[str, Any] | None:
        """Serialize the manager to a dictionary for JSON, from which another process makes one of the same plugins.

        Returns:
            The dictionary; None if the manager cannot be recreated: with given entry points, libraries of operators, or as a subclass.
        """
        if self._entry_points is not None or self._libraries or type(self) is not PluginManager:
            return None
        return {"switches": self._switches._asdict(), "prefer": self._preference._asdict(), "strict": self._strict}

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any]) -> PluginManager:
        """Create the manager that `recipe` described, regardless of environment variables."""
        manager = cls()
        switches, prefer = recipe["switches"], recipe["prefer"]
        load = None if switches["load"] is None else tuple(switches["load"])
        manager._switches = Switches(load, switches["load_source"], dict(switches["block"]))
        manager._preference = Preference(tuple(prefer["names"]), tuple((op, name) for op, name in prefer["by_op"]))
        manager._strict = recipe["strict"]
        return manager

    def add_op_library(self, path: str | os.PathLike[str], operators: Operators = None) -> None:
        """Serve the operators of a file that is no package of oplet's, before those of all plugins.

        Args:
            path: the file; the plugin that knows its kind opens it (hook `open_op_library`).
            operators: the file's functions by the ops that they serve, one function's name, or None for all that it has.

        Raises:
            OpletError: no plugin opens such files, this one cannot be used, or a file that was added before serves an op of it.
        """
        from oplet.ops.serving.registration import op_label
        from oplet.plugins.advice import no_opener
        from oplet.plugins.merged_resolver import PluginOps

        path = os.fsdecode(path)
        with self._lock:
            asked = [(p, p.open_op_library(path, operators)) for p in self._found if p.state != "blocked"]
            found = [(plugin, opened) for plugin, opened in asked if opened is not None]
            if not found:
                raise PluginError(no_opener(path, self._found))
            if len(found) > 1:
                names = " and ".join(str(plugin) for plugin, _ in found)
                raise PluginError(f"'{path}' is opened by {names}; leave one out with -p no:{found[-1][0].name}.")
            [(plugin, opened)] = found
            name = os.path.basename(path)
            for entry in opened.entries():
                before = [s for s in self._libraries if s.resolver.entry_of(entry.op, entry.min_version)]
                if before:
                    other = before[0].resolver.provenance.plugin
                    where = f"twice in {name}" if other == name else f"in {other} and in {name}"
                    raise PluginError(
                        f"{op_label(entry.op)} is {where}; name the functions to take, FILE:FUNCTION, once for each op."
                    )
            self._libraries.append(PluginOps(frozenset({normalised(name)}), APPLICATION_RANK, plugin.adopted(opened, name)))
            self._resolvers.clear()

    def open_bundle(self, path: str | os.PathLike[str]) -> Mapping[str, Any] | None:
        """Open a file that has models and other parts, with the first plugin that knows its kind (hook `open_bundle`); None if none does.

        Raises:
            OpletError: the file is damaged, or a plugin fails.
        """
        with self._lock:
            asked = (plugin.open_bundle(os.fsdecode(path)) for plugin in self._found if plugin.state != "blocked")
            return next((found for found in asked if found is not None), None)

    @property
    def has_op_libraries(self) -> bool:
        """Whether files that are no packages serve operators too."""
        return bool(self._libraries)

    def registry(self) -> DelegateRegistry:
        """Return a registry of all delegates of all plugins."""
        with self._lock:
            if self._registry is None:
                self._registry = self._load_delegates()
            return self._registry

    def delegate_for(
        self, op: str, prefer: str | Iterable[str] | Mapping[str, str] | Preference | None = None
    ) -> DelegateEntry | None:
        """Return the delegate that serves a custom op; None if there is none.

        Args:
            op: the op's name.
            prefer: the plugins to use where several have a delegate for the op, in the forms that `resolver` takes.

        Raises:
            OpConflictError: several delegates serve the op, and no preference decides.
        """
        found = self.registry().serving(op)
        for name in Preference.read(prefer).before(self._preference).for_op(op):
            found = [
                e for e in found if name in (normalised(e.provenance.distribution), normalised(e.provenance.plugin))
            ] or found
        if len(found) > 1:
            who = " and ".join(f"'{entry.name}' of {entry.provenance}" for entry in found)
            raise OpConflictError(
                f"The delegates {who} exist for {op}; choose with prefer=[{found[0].provenance.distribution!r}], or apply one of them."
            )
        return found[0] if found else None

    def commands(self) -> CommandRegistry:
        """Return the registry of all subcommands that plugins add."""
        from oplet.plugins.commands import CommandRegistry

        with self._lock:
            if self._commands is None:
                self._commands = CommandRegistry()
                for plugin in self._found:
                    if plugin.state != "blocked":
                        plugin.load_commands()
                        if plugin.commands is not None:
                            self._commands.merge(plugin.commands)
            return self._commands

    def runtime_versions(self) -> dict[tuple[str, int], str]:
        """Return the first release that runs each of the plugins' own ops, by (name, version); where plugins disagree, the first
        plugin's.
        """
        rows: dict[tuple[str, int], str] = {}
        with self._lock:
            for plugin in self._found:
                if plugin.state != "blocked":
                    plugin.load_runtime_versions()
                    for key, release in (plugin.runtime_versions.rows if plugin.runtime_versions else {}).items():
                        rows.setdefault(key, release)
        return rows

    def work_table(self) -> WorkTable:
        """Return the table that counts the work (operations) of the plugins' ops; where several plugins count an op, the one of
        the highest precedence.
        """
        from oplet.ops.serving.work import WorkTable

        merged = WorkTable()
        with self._lock:
            for plugin in self._found:
                if plugin.state != "blocked":
                    plugin.load_work()
            for plugin in sorted(self._found, key=lambda plugin: -plugin.rank):
                if plugin.work is not None:
                    merged.merge(plugin.work)
        return merged

    def plugins(self, load: bool = True) -> list[PluginInfo]:
        """Describe the installed plugins, sorted by distribution and name.

        Args:
            load: whether to import the plugins, to know their ops and delegates; otherwise only what is known so far.
        """
        with self._lock:
            if load:
                self._load_ops()
                self.registry()
                self.commands()
            return [plugin.info() for plugin in self._found]

    def outline(self) -> list[PluginOutline]:
        """List what is known of the installed plugins without importing them: names, versions, states."""
        with self._lock:
            return [
                PluginOutline(p.name, p.distribution, p.version, p.entry_point.module, p.state, bool(p.notes))
                for p in self._found
            ]

    def broken(self) -> list[PluginInfo]:
        """List the plugins that have failed so far."""
        return [info for info in self.plugins(load=False) if info.state == "broken"]

    def providers(self, op: Op | int) -> list[PluginInfo]:
        """List the plugins that serve an op in some version; a built-in operator may be given by its name."""
        key = _op(op)
        with self._lock:
            return [p.info() for p in self._load_ops() if p.ops is not None and p.ops.versions(key)]

    def advice(self, op: Op | int, package: str = "") -> str:
        """Return advice, in one line, on what to install, upgrade or enable for an op that nothing serves in the version a model needs.

        Args:
            op: a built-in operator's code or name, or a custom op's name.
            package: the package to advise if several have the op; "" for the one that is known to provide it.
        """
        from oplet.plugins.advice import advice

        key = _op(op)
        with self._lock:
            return advice(key, self._load_ops(), self.delegate_for(key) if isinstance(key, str) else None, package)

    @functools.cached_property
    def _found(self) -> list[Plugin]:
        entry_points = self._entry_points
        if entry_points is None:
            entry_points = installed.entry_points(GROUP)
        plugins = sorted(map(Plugin, entry_points), key=_position)
        for plugin in plugins:
            if refusal := self._switches.refusal(plugin.names):
                plugin.block(refusal)
        for variable, meant in misspelt_variables(os.environ).items():
            warn("%s in the environment is no variable of oplet's; it reads %s.", variable, meant)
        names = [name for plugin in plugins for name in plugin.names]
        for name in self._switches.unknown(names):
            if self._strict:
                there = dict.fromkeys(plugin.distribution or plugin.name for plugin in plugins)
                raise PluginError(
                    f"{self._switches.load_source} names '{name}', and no installed plugin is called so; installed are "
                    f"{', '.join(there) or 'none'}. 'no:NAME' leaves one out and keeps the others."
                )
            warn("%s names '%s', and no plugin is called so.", self._switches.load_source, name)
        for name, source in self._switches.needless(names).items():
            warn("%s%s names nothing: no plugin is called so.", source if source.endswith(("=", ":")) else f"{source}=", name)
        note_namesakes(plugins)
        return plugins

    def _load_ops(self) -> list[Plugin]:
        for plugin in self._found:
            if plugin.state != "blocked":
                plugin.load_ops()
        return self._found

    def _load_delegates(self) -> DelegateRegistry:
        from oplet.delegates.registry import DelegateRegistry
        from oplet.plugins.advice import delegate_advice, no_loader

        merged = DelegateRegistry(no_loader=lambda: no_loader(self._found), advice=delegate_advice)
        for plugin in self._found:
            if plugin.state != "blocked":
                plugin.load_delegates()
                if plugin.delegates is not None:
                    merged.merge(plugin.delegates)
        return merged


@functools.cache
def default_manager() -> PluginManager:
    """Return the manager of the installed plugins, which interpreters use by default."""
    return PluginManager()


def _op(op: Op | int) -> Op:
    """Return the resolver's key for an op; a built-in operator may be given by its name."""
    from oplet.ops.serving.registration import op_key

    return BuiltinOperator[op] if isinstance(op, str) and op in BuiltinOperator.__members__ else op_key(op)


def _complaints(wanted: Preference, plugins: Sequence[Plugin]) -> Iterator[str]:
    """Yield the parts of a preference that have no effect, each as the predicate of a sentence about its origin."""
    for name in wanted.unknown(name for plugin in plugins for name in plugin.names):
        yield f"names '{name}', and no plugin is called so"
    if not wanted.names and not wanted.by_op:
        return
    from oplet.ops.serving.registration import op_label

    served = {plugin: {op_label(entry.op) for entry in plugin.ops.entries()} for plugin in plugins if plugin.ops is not None}
    everything = set().union(*served.values())
    for name in wanted.names:
        named = [plugin for plugin in served if name in plugin.names]
        if named and not any(served[plugin] or "register_delegates" in plugin.hooks for plugin in named):
            yield f"names '{name}', which brings no operators"
    for op, name in wanted.by_op:
        named = [plugin for plugin in served if name in plugin.names]
        if not named or any(op in served[plugin] or (plugin.ops and plugin.ops.versions(_op(op))) for plugin in named):
            continue
        close = next((other for other in everything if other.lower() == op.lower()), "")
        hint = f" (did you mean {close}?)" if op not in everything and close else ""
        yield f"names '{name}' for {op}, which it does not serve{hint}"


def _position(plugin: Plugin) -> tuple[str, str, str]:
    return normalised(plugin.distribution), plugin.name, plugin.entry_point.value
