"""Selection of plugins: which may load, and which are preferred where several serve an op.

A plugin is selected by the name of its entry point or of its distribution; case is ignored, and so are differences between "-", "_" and
".".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from oplet.errors import PluginError
from oplet.records import Row

__all__ = [
    "DISABLE_VARIABLE",
    "LOAD_VARIABLE",
    "PREFER_VARIABLE",
    "VARIABLES",
    "Preference",
    "Switches",
    "misspelt_variables",
    "normalised",
    "selecting_environment",
]

LOAD_VARIABLE = "OPLET_PLUGINS"
DISABLE_VARIABLE = "OPLET_DISABLE_PLUGINS"
PREFER_VARIABLE = "OPLET_PREFER"
#: All environment variables of oplet; `model.files.cache_folder` and `runtime.execution.loaded_model` read the last ones.
VARIABLES = (LOAD_VARIABLE, DISABLE_VARIABLE, PREFER_VARIABLE, "OPLET_CACHE_DIR", "OPLET_PLANS")


def normalised(name: str) -> str:
    """Normalize the name of a distribution or plugin for comparisons (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def selecting_environment(environ: Mapping[str, str]) -> tuple[str | None, ...]:
    """Return the values of the variables that select plugins, None for those that are not set."""
    return tuple(map(environ.get, VARIABLES[:3]))


def misspelt_variables(environ: Iterable[str]) -> dict[str, str]:
    """Map environment variables that look like misspelt variables of oplet to the probable names."""
    found = {}
    for name in environ:
        if name.startswith("OPLET") and name not in VARIABLES:
            import difflib

            if close := difflib.get_close_matches(name, VARIABLES, 1, 0.85):
                found[name] = close[0]
    return found


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    items = given.split(",") if isinstance(given, str) else given
    return tuple(name for name in map(normalised, items) if name)


def _split(given: str | Iterable[str], source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split a list of plugin names into those that may load and those after a "no:", which may not.

    Raises:
        PluginError: an item is not a name.
    """
    wanted, unwanted = list[str](), list[str]()
    for item in given.split(",") if isinstance(given, str) else given:
        if not isinstance(item, str):
            raise PluginError(f"{source} names plugins or distributions; {item!r} is a {type(item).__name__}.")
        head, colon, name = item.partition(":")
        if colon and head.strip().lower() == "no":
            unwanted.append(name)
        else:
            wanted.append(item)
    return _names(wanted), _names(unwanted)


class Switches(Row):
    """Which plugins may load: lists of allowed and of blocked names.

    Attributes:
        load: the names of the only plugins that may load; None for all.
        load_source: where `load` was given, as messages name it.
        block: the names of plugins that may not load, each with where it was given.
    """

    load: tuple[str, ...] | None
    load_source: str
    block: Mapping[str, str]

    @classmethod
    def read(
        cls,
        load: str | Iterable[str] | None,
        block: str | Iterable[str],
        environ: Mapping[str, str],
        argument: str = "load=",
    ) -> Switches:
        """Read the switches from a manager's arguments and the environment.

        `load` takes precedence over its variable; blocked names of both are added up. A name after "no:" in `load` or its variable is
        blocked; a list with only such names allows all others.

        Args:
            load: the names of the only plugins that may load; None for those in the environment variable OPLET_PLUGINS.
            block: the names of plugins that may not load.
            environ: the environment variables.
            argument: the name of the argument `load` in messages.

        Raises:
            PluginError: an item of `load` is not a name.
        """
        blocked = dict.fromkeys(_names(environ.get(DISABLE_VARIABLE, "")), DISABLE_VARIABLE)
        blocked.update(dict.fromkeys(_names(block), "block="))
        wanted: tuple[str, ...] | None = None
        source = argument
        for given, name in ((load, argument), (environ.get(LOAD_VARIABLE), LOAD_VARIABLE)):
            if given is None:
                continue
            names, unwanted = _split(given, name)
            blocked.update(dict.fromkeys(unwanted, f"{name.removesuffix('=')}=no:"))
            if names or not unwanted:
                wanted, source = names, name
                break
        return cls(wanted, source, blocked)

    def refusal(self, names: Iterable[str]) -> str:
        """Return the reason why the plugin with these names may not load; "" if it may."""
        names = set(names)
        for name, source in self.block.items():
            if name in names:
                return f"switched off by {source}{'' if source.endswith(('=', ':')) else '='}{name}"
        if self.load is not None and names.isdisjoint(self.load):
            return f"not among those that {self.load_source} allows"
        return ""

    def unknown(self, names: Collection[str]) -> list[str]:
        """Return the names in `load` that are not among `names`, those of the installed plugins."""
        return [name for name in self.load or () if name not in names]

    def needless(self, names: Collection[str]) -> dict[str, str]:
        """Return the names in `block` that are not among `names`, those of the installed plugins, each with where it was given."""
        return {name: source for name, source in self.block.items() if name not in names}


class Preference(Row):
    """The plugins to use where several serve an op.

    Attributes:
        names: the names of plugins, the most preferred first.
        by_op: pairs (op, name of a plugin), which take precedence over `names`; "Flex*" stands for all ops whose names begin so.
    """

    names: tuple[str, ...] = ()
    by_op: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, given: str | Iterable[str] | Mapping[str, str] | Preference | None, source: str = "prefer=") -> Preference:
        """Read a preference from names, from a mapping of ops to names, or from text: "oplet-a,Atan=oplet-b".

        Args:
            given: the preference; None for none.
            source: its origin in messages.

        Raises:
            PluginError: `given` has another form.
        """
        if given is None:
            return cls()
        if isinstance(given, Preference):
            return given
        if isinstance(given, Mapping):
            given = [f"{op}={name}" for op, name in given.items()]
        names, by_op = [], []
        for item in given.split(",") if isinstance(given, str) else given:
            if not isinstance(item, str):
                raise PluginError(f"{source} names plugins or distributions; {item!r} is a {type(item).__name__}.")
            op, equals, name = item.rpartition("=")
            if equals and not (op.strip() and normalised(name)):
                raise PluginError(
                    f"{source} has '{item}', which is no preference; write PACKAGE, or OP=PACKAGE for a single op: "
                    "'oplet-fast-ops,CONV_2D=oplet-other-ops'."
                )
            if equals:
                by_op.append((op.strip(), normalised(name)))
            elif normalised(name):
                names.append(normalised(name))
        return cls(tuple(names), tuple(by_op))

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Return the preferred names that are not among `names`, those of the installed plugins."""
        wanted = dict.fromkeys((*self.names, *(name for _, name in self.by_op)))
        known = set(names)
        return [name for name in wanted if name not in known]

    def before(self, other: Preference) -> Preference:
        """Combine two preferences; this one takes precedence."""
        return Preference(self.names + other.names, self.by_op + other.by_op)

    def for_op(self, op: str) -> tuple[str, ...]:
        """Return the names of plugins to try for an op, in order."""
        from oplet.ops.serving.provenance import matches  # imported late: a plan that is taken from disk resolves no ops

        return tuple(name for of, name in self.by_op if matches(of, op)) + self.names
