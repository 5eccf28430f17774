"""A plugin: its metadata, its import, and calls of its hooks that survive any failure in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from oplet.errors import OpletError, PluginError, failures, text_of
from oplet.ops.serving.provenance import Provenance
from oplet.plugins.selection import normalised
from oplet.records import Row
from oplet.schema.enums import BuiltinOperator
from oplet.texts import logger_of

if TYPE_CHECKING:
    from importlib_metadata import EntryPoint

    from oplet.delegates.registry import DelegateRegistry
    from oplet.ops.serving.registration import Op
    from oplet.ops.serving.resolver import MutableOpResolver
    from oplet.ops.serving.work import WorkTable
    from oplet.plugins.commands import CommandRegistry
    from oplet.versions.runtime_version import RuntimeVersions

__all__ = [
    "API_VERSION",
    "APPLICATION_RANK",
    "Operators",
    "Plugin",
    "PluginInfo",
    "PluginOutline",
    "State",
    "api_range",
    "note_namesakes",
    "warn",
]

#: The version of the plugin contract (hooks, Registration, Context) that this oplet offers.
API_VERSION = 1

#: The tiers of plugins, in ascending precedence.
_TIERS = ("draft", "builtin", "selection", "fast", "plugin")
#: What the application itself names goes before all of them.
APPLICATION_RANK = len(_TIERS)

#: Which functions of a file serve which ops: a mapping from ops to functions, one function's name, or None for all that it has.
Operators = Mapping[str | BuiltinOperator, str] | str | None

State = Literal["found", "loaded", "blocked", "broken"]
Registry = TypeVar("Registry")


def warn(text: str, *arguments: object) -> None:
    """Log a warning about plugins."""
    logger_of("oplet.plugins").warning(text, *arguments)


class PluginInfo(Row):
    """Information on a plugin, as `oplet plugins` shows it.

    Attributes:
        name: the name of its entry point.
        distribution: the pip package that contains it.
        version: that package's version.
        module: the module of the entry point.
        api: the plugin API versions that it supports, "" until it is imported.
        tier: its precedence, in ascending order "draft" (unfinished), "builtin", "selection" (extracted from others by `oplet
            build`), "fast" (faster kernels for builtin ops) or "plugin".
        hooks: the hooks that it implements.
        ops: the ops that it provides, including composites, each as (name, first version, last version).
        delegates: the names of the delegates that it provides.
        commands: the names of the commands that it adds to `oplet`.
        state: "found" (not imported yet), "loaded", "blocked" or "broken".
        error: the reason why it is blocked or broken, "" in other states.
        notes: remarks for its author.
    """

    name: str
    distribution: str
    version: str
    module: str
    api: str
    tier: str
    hooks: tuple[str, ...]
    ops: tuple[tuple[str, int, int], ...]
    delegates: tuple[str, ...]
    commands: tuple[str, ...]
    state: State
    error: str
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the information as a dictionary, for JSON."""
        ops = [{"op": op, "min_version": first, "max_version": last} for op, first, last in self.ops]
        return {**self._asdict(), "ops": ops}


class PluginOutline(Row):
    """What is known of a plugin without importing it; the other attributes are `PluginInfo`'s.

    Attributes:
        noted: whether there are remarks for its author.
    """

    name: str
    distribution: str
    version: str
    module: str
    state: State
    noted: bool


def api_range(declared: object) -> tuple[int, int]:
    """Parse a declaration of plugin API versions into (first, last): 1, "1", "1-2", (1, 2), or None for the present version.

    Raises:
        PluginError: the declaration has another form.
    """
    if declared is None:
        return API_VERSION, API_VERSION
    parts = declared.split("-") if isinstance(declared, str) else declared
    parts = list(parts) if isinstance(parts, tuple | list) else [parts]
    try:
        versions = [int(part) for part in parts if isinstance(part, int | str)]
    except ValueError:
        versions = []
    if len(versions) not in (1, 2) or versions[0] > versions[-1]:
        raise PluginError(f"OPLET_API is {declared!r}; write '{API_VERSION}', or a range such as '1-{API_VERSION + 1}'")
    return versions[0], versions[-1]


class Plugin:
    """A plugin, from its discovery on. An exception of its code sets `error` and logs one line of warning; it is not raised.

    Args:
        entry_point: its entry point.
    """

    def __init__(self, entry_point: EntryPoint) -> None:
        self.entry_point = entry_point
        self.name = entry_point.name
        self.distribution, self.version = _distribution(entry_point)
        self.names = frozenset(filter(None, (normalised(self.name), normalised(self.distribution))))
        self.provenance = Provenance(self.name, self.distribution, self.version, entry_point.module)
        self.state: State = "found"
        self.error = ""
        self.notes: list[str] = []
        self.tier = "plugin"
        self.api = ""
        self.hooks: tuple[str, ...] = ()
        self.ops: MutableOpResolver | None = None
        self.delegates: DelegateRegistry | None = None
        self.commands: CommandRegistry | None = None
        self.runtime_versions: RuntimeVersions | None = None
        self.work: WorkTable | None = None
        self._hooks: dict[str, Callable[..., Any]] | None = None  # None until it is imported

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".rstrip() or f"plugin '{self.name}'"

    @property
    def rank(self) -> int:
        """Precedence of the plugin's tier (built-in ops, faster kernels, ...); plugins with the highest serve first."""
        return _TIERS.index(self.tier)

    def block(self, reason: str) -> None:
        """Block the plugin: it is never imported."""
        self.state, self.error = "blocked", reason

    def load_ops(self) -> None:
        """Register the plugin's ops, once; it is imported if necessary."""
        if self.ops is None:
            # Imported late, here and below: a plan that is taken from disk resolves no ops.
            from oplet.ops.serving.registration import op_label
            from oplet.ops.serving.resolver import MutableOpResolver

            self.ops = self._registered("register_ops", "resolver", lambda: MutableOpResolver(self.provenance))
            for entry in self.ops.overridden():
                self._note(
                    f"it registers {op_label(entry.op)} twice in a version of {entry.min_version} to {entry.max_version}; the last counts"
                )

    def load_delegates(self) -> None:
        """Register the plugin's delegates, once; it is imported if necessary."""
        if self.delegates is None:
            from oplet.delegates.registry import DelegateRegistry

            self.delegates = self._registered("register_delegates", "registry", lambda: DelegateRegistry(self.provenance))

    def load_commands(self) -> None:
        """Import the plugin if need be and have it register its commands, once."""
        if self.commands is None:
            from oplet.plugins.commands import CommandRegistry

            self.commands = self._registered("register_commands", "registry", lambda: CommandRegistry(self.provenance))

    def open_bundle(self, path: str) -> Mapping[str, Any] | None:
        """Open a file that has models and other parts; None if the plugin does not open such files.

        Raises:
            OpletError: the file is of the plugin's kind and damaged.
            PluginError: the plugin fails.
        """
        found: Mapping[str, Any] | None = self._opened("open_bundle", path=path)
        return found

    def _opened(self, hook: str, **arguments: Any) -> Any:
        """Return what a hook that opens a file returns; None if the plugin has not got it."""
        if self.state == "found":
            self._import()
        if self._hooks is None or hook not in self._hooks:
            return None
        try:
            return self._hooks[hook](**arguments)
        except OpletError:
            raise
        except failures() as error:
            raise PluginError(
                f"The plugin '{self.name}' of {self} fails to open '{arguments['path']}': {_one_line(error)}"
            ) from error

    def open_op_library(self, path: str, operators: Operators) -> MutableOpResolver | None:
        """Open a file of operators that is no Python package; None if the plugin does not open such files.

        Raises:
            OpletError: the file is of the plugin's kind and cannot be used.
            PluginError: the plugin fails.
        """
        found = self._opened("open_op_library", path=path, operators=operators)
        from oplet.ops.serving.resolver import MutableOpResolver

        if found is not None and not isinstance(found, MutableOpResolver):
            raise PluginError(f"The plugin '{self.name}' of {self} gives {found!r} for '{path}', which is no MutableOpResolver.")
        return found

    def adopted(self, opened: MutableOpResolver, name: str) -> MutableOpResolver:
        """Return a copy of the resolver that names the opened file as plugin, and this plugin's package, which runs it, as
        distribution.
        """
        from oplet.ops.serving.resolver import MutableOpResolver

        resolver = MutableOpResolver(self.provenance._replace(plugin=name))
        resolver.add_all(opened, resolver.provenance)
        return resolver

    def load_runtime_versions(self) -> None:
        """Register the runtime versions of the plugin's ops, once; it is imported if necessary."""
        if self.runtime_versions is None:
            from oplet.versions.runtime_version import RuntimeVersions

            self.runtime_versions = self._registered("register_runtime_versions", "table", RuntimeVersions)

    def load_work(self) -> None:
        """Register the functions that count the work (operations, bytes) of the plugin's ops, once; import it if necessary."""
        if self.work is None:
            from oplet.ops.serving.work import WorkTable

            self.work = self._registered("register_work", "table", WorkTable)

    def fail(self, reason: str) -> None:
        """Mark the plugin as broken, and log the reason in one line."""
        self.state = "broken"
        self.error = f"{self.error}; {reason}" if self.error else reason
        warn("Plugin '%s' of %s is left out: %s; %s.", self.name, self, reason, self.remedy())

    def remedy(self) -> str:
        """Suggest the commands that may repair the plugin when it is broken."""
        if not self.distribution:
            return f"mend the module '{self.entry_point.module}'"
        from oplet.plugins.install_commands import install_command

        return f"{install_command(self.distribution, upgrade=True)} may help, pip uninstall {self.distribution} removes it"

    def info(self) -> PluginInfo:
        """Return the information on the plugin that is known so far."""
        from oplet.ops.serving.registration import op_label

        served: dict[Op, tuple[int, int]] = {}
        for entry in self.ops.entries() if self.ops else ():
            first, last = served.get(entry.op, (entry.min_version, entry.max_version))
            served[entry.op] = min(first, entry.min_version), max(last, entry.max_version)
        return PluginInfo(
            name=self.name,
            distribution=self.distribution,
            version=self.version,
            module=self.entry_point.value,
            api=self.api,
            tier=self.tier,
            hooks=self.hooks,
            ops=tuple(sorted((op_label(op), *versions) for op, versions in served.items())),
            delegates=tuple(entry.name for entry in self.delegates.entries()) if self.delegates else (),
            commands=tuple(entry.name for entry in self.commands.entries()) if self.commands else (),
            state=self.state,
            error=self.error,
            notes=tuple(self.notes),
        )

    def _note(self, note: str) -> None:
        self.notes.append(note)
        warn("Plugin '%s' of %s: %s.", self.name, self, note)

    def _registered(self, hook: str, argument: str, make: Callable[[], Registry]) -> Registry:
        """Return what `make` makes, after a hook has added to it, as its argument of this name; a new one where the hook failed."""
        if self.state == "found":
            self._import()
        registry = make()
        if self._hooks is not None and hook in self._hooks:
            try:
                self._hooks[hook](**{argument: registry})
            except failures() as error:
                self.fail(f"its hook {hook} raised {_one_line(error)}")
                return make()  # nothing of what it has added half way
        return registry

    def _import(self) -> None:
        from oplet.plugins.hookspecs import hooks_of_pluggy, plain_hooks

        try:
            target = self.entry_point.load()
            first, last = api_range(getattr(target, "OPLET_API", None))
            self.api = str(first) if first == last else f"{first}-{last}"
            if not first <= API_VERSION <= last:
                self._refuse_api(first)
                return
            hooks = plain_hooks(target, self._note)
            if hooks is None:
                hooks = hooks_of_pluggy(target, self.name, self._note)
            tier = getattr(target, "OPLET_TIER", "plugin")
            self.tier = tier if tier in _TIERS else "plugin"
            self.hooks = tuple(hooks)
        except failures() as error:  # also SystemExit: the module may be a script
            self.fail(_one_line(error))
            return
        self.state, self._hooks = "loaded", hooks

    def _refuse_api(self, first: int) -> None:
        from oplet.plugins.install_commands import upgrade_command

        newer = f"oplet is needed: {upgrade_command()}" if first > API_VERSION else "version of the plugin is needed"
        self.fail(f"it speaks plugin API {self.api} and this oplet speaks {API_VERSION}, so a newer {newer}")


def note_namesakes(plugins: Iterable[Plugin]) -> None:
    """Add a note to plugins that share a name, as enabling or disabling plugins by this name affects all of them."""
    by_name: dict[str, list[Plugin]] = {}
    for plugin in plugins:
        if plugin.state != "blocked":
            by_name.setdefault(normalised(plugin.name), []).append(plugin)
    for namesakes in by_name.values():
        if len(namesakes) > 1:
            who = " and ".join(map(str, namesakes))
            note = f"the plugin name '{namesakes[0].name}' is used by {who}"
            for plugin in namesakes:
                plugin.notes.append(note)
            warn("%s; tell them apart by distribution, as in -p no:%s.", note.capitalize(), namesakes[-1].distribution)


def _distribution(entry_point: EntryPoint) -> tuple[str, str]:
    """Return name and version of the package that an entry point belongs to; "" where its metadata is damaged."""
    try:
        dist = entry_point.dist
        return (dist.name or "", dist.version or "") if dist is not None else ("", "")
    except Exception:  # importlib_metadata raises various errors on damaged metadata
        return "", ""


def _one_line(error: BaseException) -> str:
    name, text = type(error).__name__, text_of(error)
    text = text.removesuffix(".") if len(text) <= 300 else f"{text[:300]}..."
    return text if isinstance(error, PluginError) or text.startswith(name) else f"{name}: {text}"
