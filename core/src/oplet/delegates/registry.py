"""Registry of delegates, in which `load_delegate` finds those of installed packages by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oplet.delegates.delegate import Delegate
from oplet.errors import DelegateError, DelegateLoadError, PluginError, failures, text_of
from oplet.ops.serving.registration import Provenance

__all__ = ["DelegateEntry", "DelegateRegistry"]


@dataclass(frozen=True)
class DelegateEntry:
    """A registered delegate.

    Attributes:
        name: its name.
        factory: a function that takes the options and returns the delegate, or its "module:NAME".
        provenance: the package that it comes from.
    """

    name: str
    factory: Callable[[Mapping[str, Any]], Delegate] | str
    provenance: Provenance

    def create(self, options: Mapping[str, Any] | None = None) -> Delegate:
        """Create the delegate.

        Raises:
            PluginError: its module or factory cannot be imported.
            DelegateLoadError: the factory refuses the options.
        """
        factory = self.factory
        if isinstance(factory, str):
            module, _, name = factory.partition(":")
            try:
                factory = getattr(importlib.import_module(module), name)
            except failures() as error:  # importing runs code of other packages
                raise PluginError(
                    f"The delegate '{self.name}' of {self.provenance} cannot be imported from '{self.factory}': "
                    f"{text_of(error, named=True)}; upgrade or uninstall that package."
                ) from error
        try:
            delegate = factory(dict(options or {}))
            if isinstance(delegate, Delegate):
                delegate.name = self.name  # reports use the name by which it was loaded
                delegate.provenance = self.provenance
            return delegate
        except failures() as error:
            raise DelegateLoadError(
                f"Failed to load delegate from {self.name}: {self.provenance} refuses the options {dict(options or {})}: {text_of(error)}"
            ) from error


class DelegateRegistry:
    """The delegates by name, to which `register_delegates` of a plugin adds its own.

    Example:
        >>> from oplet import Delegate, DelegateRegistry
        >>> registry = DelegateRegistry()
        >>> registry.add("mine", Delegate)
        >>> [entry.name for entry in registry.entries()]
        ['mine']
    """

    def __init__(self, provenance: Provenance | None = None) -> None:
        self.provenance = provenance or Provenance()
        self._entries: dict[str, list[DelegateEntry]] = {}

    def add(self, name: str, factory: Callable[[Mapping[str, Any]], Delegate] | str) -> None:
        """Register a delegate.

        Args:
            name: the name by which `load_delegate` finds it.
            factory: a function that takes a mapping of options and returns a Delegate, such as a Delegate class; or its
                "module:NAME".

        Raises:
            DelegateError: the name is empty, or the factory is neither callable nor a "module:NAME".
        """
        if not isinstance(name, str) or not name:
            raise DelegateError(f"A delegate is registered under {name!r}, which is not a name.")
        if not callable(factory) and not (isinstance(factory, str) and ":" in factory):
            raise DelegateError(f"The delegate '{name}' is registered with {factory!r}, neither a callable nor 'module:NAME'.")
        self._entries.setdefault(name, []).append(DelegateEntry(name, factory, self.provenance))

    def merge(self, other: DelegateRegistry) -> None:
        """Add every entry of another registry, with its provenance."""
        for entry in other.entries():
            self._entries.setdefault(entry.name, []).append(entry)

    def entries(self) -> Iterator[DelegateEntry]:
        """All entries, sorted by name."""
        return (entry for name in sorted(self._entries) for entry in self._entries[name])

    def find(self, name: str) -> DelegateEntry:
        """The entry of a delegate, by its name or by "distribution:name" where several packages have one of that name.

        Raises:
            DelegateLoadError: there is none, or more than one.
        """
        distribution, _, short = name.rpartition(":")
        found = [
            e
            for e in self._entries.get(short, [])
            if name == short or (distribution and e.provenance.distribution == distribution)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            if distribution and (distribution.rpartition(":")[2] in self._entries):
                raise DelegateLoadError(
                    f"Failed to load delegate from {name}: '{short}' behind the delegate '{distribution}' is no option; options have a "
                    f"value, as in {distribution}:{short or 'key'}=VALUE."
                )
            known = ", ".join(sorted(self._entries)) or "none"
            raise DelegateLoadError(
                f"Failed to load delegate from {name}: no installed package brings a delegate of that name (known: {known}). "
                "Native delegate libraries (.so, .dll) run in LiteRT only."
            )
        packages = " and ".join(str(entry.provenance) for entry in found)
        raise DelegateLoadError(
            f"Failed to load delegate from {name}: {packages} both bring it; name one as '{found[0].provenance.distribution}:{short}'."
        )
