"""Which plugins are switched on, and which one is preferred where several could serve.

A plugin answers to two names: its entry point's and its distribution's, both without regard to case and to the
difference of "-", "_" and ".".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oplet.errors import PluginError

__all__ = [
    "DISABLE_VARIABLE",
    "LOAD_VARIABLE",
    "PREFER_VARIABLE",
    "VARIABLES",
    "Preference",
    "Switches",
    "misspelt_variables",
    "normalised",
]

LOAD_VARIABLE = "OPLET_PLUGINS"
DISABLE_VARIABLE = "OPLET_DISABLE_PLUGINS"
PREFER_VARIABLE = "OPLET_PREFER"
#: All that oplet reads; `oplet.tuning.choice_cache` has the last one.
VARIABLES = (LOAD_VARIABLE, DISABLE_VARIABLE, PREFER_VARIABLE, "OPLET_CACHE_DIR")


def normalised(name: str) -> str:
    """The form of a distribution's or plugin's name that is compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def misspelt_variables(environ: Iterable[str]) -> dict[str, str]:
    """Variables that seem to be meant for oplet and are none that it reads, each with the one that was meant."""
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
    """The names in a list of what may load, and those that stand behind a "no:" in it.

    Raises:
        PluginError: an item is no name.
    """
    wanted: list[str] = []
    unwanted: list[str] = []
    for item in given.split(",") if isinstance(given, str) else given:
        if not isinstance(item, str):
            raise PluginError(f"{source} names plugins or distributions; {item!r} is a {type(item).__name__}.")
        head, colon, name = item.partition(":")
        if colon and head.strip().lower() == "no":
            unwanted.append(name)
        else:
            wanted.append(item)
    return _names(wanted), _names(unwanted)


@dataclass(frozen=True)
class Switches:
    """Which plugins may load.

    Attributes:
        load: the names of the only ones that may, None for all.
        load_source: who said so, for messages.
        block: the names of those that may not, with who said so.
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
        """Switches from a manager's arguments and the environment; `load` goes before its variable, blocks add up.

        A name behind "no:" in `load` or in its variable is blocked, as on the command line; a list of such names alone says
        nothing of the others.

        Args:
            argument: what messages call `load`.

        Raises:
            PluginError: `load` has something that is no name.
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
        """Why the plugin that answers to `names` may not load, "" if it may."""
        names = set(names)
        for name, source in self.block.items():
            if name in names:
                return f"switched off by {source}{'' if source.endswith(('=', ':')) else '='}{name}"
        if self.load is not None and names.isdisjoint(self.load):
            return f"not among those that {self.load_source} allows"
        return ""

    def unknown(self, names: Iterable[str]) -> list[str]:
        """The names that should load and that no plugin in `names` answers to."""
        known = set(names)
        return [name for name in self.load or () if name not in known]

    def needless(self, names: Iterable[str]) -> dict[str, str]:
        """The names to leave out that no plugin in `names` answers to, with who said so."""
        known = set(names)
        return {name: source for name, source in self.block.items() if name not in known}


@dataclass(frozen=True)
class Preference:
    """Which plugin to take where several could serve.

    Attributes:
        names: plugins, the most preferred first.
        by_op: plugins for single ops, which go before `names`.
    """

    names: tuple[str, ...] = ()
    by_op: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, given: str | Iterable[str] | Mapping[str, str] | Preference | None, source: str = "prefer=") -> Preference:
        """A preference from names, from a mapping of ops to names, or from text: "oplet-a,Atan=oplet-b".

        Args:
            source: who says so, for messages.

        Raises:
            PluginError: it is none of these.
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
        """The names that are preferred and that no plugin in `names` answers to."""
        wanted = dict.fromkeys((*self.names, *(name for _, name in self.by_op)))
        known = set(names)
        return [name for name in wanted if name not in known]

    def before(self, other: Preference) -> Preference:
        """This preference, and the other where this one says nothing."""
        return Preference(self.names + other.names, self.by_op + other.by_op)

    def for_op(self, op: str) -> tuple[str, ...]:
        """The names to try for an op, in order."""
        return tuple(name for of, name in self.by_op if of == op) + self.names
